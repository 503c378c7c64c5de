/// Checks whether one replica may stand for others.
///
/// A plan that plays one of several replicas (Plan::mirrors) is refused where
///   - a processor is mirrored twice, by itself, or by a mirror, or some more often than others,
///   - it differs from the one that is played, or its memory does,
///   - a step runs on a mirror, or a buffer is in its memory, or two share a memory,
///   - a memory that is mirrored by itself differs from its like, which is no mirror and mirrored as often as processors,
///   - a link of the platform draws power, which nobody would sum up,
///   - a direction of a link is mirrored twice, by a mirror, or by one that is slower or faster.
/// A channel with an image is refused without mirrors, where the ends of the one do not mirror those
/// of the other, and where the way out and the way in differ in latency or bandwidth, share a
/// direction of a link, or cross one that is not fifo.
///
/// That the mirrors' ways are alike and disjoint the planner answers for.
#pragma once

#include "plan/core/plan.hpp"
#include "platform/core/topology.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// At most `most`, one sentence each. Precondition: check_ranges() found nothing. O(processors +
/// buffers + lanes).
[[nodiscard]] std::vector<std::string> mirror_problems(const Plan& plan, const Platform& platform,
                                                       const Topology& topology, std::size_t most);

/// Whether two processors, with their memories, are described alike: then they do everything in the
/// same time and space.
[[nodiscard]] bool are_alike(const Platform& platform, ProcessorId a, ProcessorId b);
[[nodiscard]] bool are_alike(const Platform& platform, MemoryId a, MemoryId b);

/// How many replicas the plan stands for: 1 without mirrors.
[[nodiscard]] std::uint32_t replicas_of(const Plan& plan);

/// What is known by memory of the replica that is played, for the memories of the others, too.
template <class T>
void copy_to_mirrors(const Plan& plan, const Platform& platform, std::vector<T>& by_memory) {
  const auto home = [&](ProcessorId processor) { return index(platform[processor].memory); };
  for (const Mirror& mirror : plan.mirrors)
    by_memory[home(mirror.processor)] = by_memory[home(mirror.like)];
  for (const MemoryMirror& mirror : plan.memory_mirrors)
    by_memory[index(mirror.memory)] = by_memory[index(mirror.like)];
}

}  // namespace plimsoll
