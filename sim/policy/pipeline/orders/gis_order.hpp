/// The generalized interleaved schedule of PipeOffload (Wan et al. 2025, arXiv:2503.01328, by the
/// rule of its published code): v chunks of a device on a loop, backwards in halves.
///
/// Microbatches come in groups of g. In unit slots, with q = ceil(g_min / g) and d = v / gcd(v, q),
/// group n of member y on device i has
///
///   F of chunk j        3gvn + 3qgj + 3y + i + 3g (j div d)
///   B of chunk v-1-j    that of F of chunk v-1, member 0, + 3(p-1-i) + 1 + 3qgj + 3y + 3g (j div
///   d) W                   the slot after its B
///
/// g_min is the least number of microbatches from ceil(p/2) on whose g_min (F+B+W) of the longest
/// chunk is at least what all devices take for the forwards, or for the backwards of the input, of
/// one chunk: then a group's second chunk finds its inputs made. Slots of a device never collide;
/// the order is all that is used, and is executed with the real times.
///
/// Example: p = 2, v = 2, g = 2 (so q = 1, d = 2). Device 0 has F0 of microbatches 0, 1 in slots 0
/// and 3, F1 in 6 and 9, and B1 of microbatch 0 at 6 + 3 + 1 = 10.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct SlottedTask {
  std::int64_t slot = 0;
  Task task;
};

/// By device, in the order of their slots. O(tasks log tasks). Preconditions: slots are on a loop
/// (loop_placement()); 1 <= group.
[[nodiscard]] std::vector<std::vector<SlottedTask>> gis_tasks(const SlotCosts& costs,
                                                              std::uint32_t microbatches,
                                                              std::uint32_t group);

/// The schedule of these orders.
[[nodiscard]] Schedule gis_schedule(const SlotCosts& costs, std::uint32_t microbatches,
                                    std::uint32_t group);

struct GroupParameters : PipelineParameters {
  std::optional<Located<std::int64_t>> group;
};

/// Adds `group`; `otherwise` says what it is where the parameters do not.
template <class Parameters>
void add_group(Record<Parameters>& record, const std::string& otherwise) {
  std::optional<Located<std::int64_t>> Parameters::*group = &Parameters::group;
  record.optional("group", group, located(integer(1, 65'536)),
                  "microbatches that run a chunk one after the other, at most one a device; "
                  "default " +
                      otherwise);
}

/// The group, where the parameters do not say `otherwise`. Throws InputError where it is more than
/// the devices are.
[[nodiscard]] std::uint32_t group_of(const GroupParameters& parameters, std::size_t devices,
                                     std::size_t otherwise);

}  // namespace plimsoll
