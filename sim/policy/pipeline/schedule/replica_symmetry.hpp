/// Whether one replica of a pipeline may be played for all of them.
///
/// The replicas do the same at the same times exactly if nothing tells them apart. With N replicas
/// of p devices, and for every replica the ways of its messages (between devices of neighbouring
/// slots) and of its reductions (from each device to its likes in other replicas):
///
///   1. the devices of a stage and their memories are alike, and no two share a memory (unlike_devices());
///   2. renaming every replica k to k+1 (of a tree: to k xor t; in a mesh along each of its axes)
///      takes ways to ways: links that stand for each other agree in latency, bandwidth and duplex;
///   3. no direction of a link is taken by the same way of two replicas: there they would wait for
///      each other, and one would come first;
///   4. if routes of different replicas take a link, so do the same routes of the replica that is
///      played, or those that lead into it from the replica before: nothing waits for what it does
///      not see;
///   5. all links of these routes are `fifo`;
///   6. each link that a replica takes is taken as one is that the played replica sees.
///
/// Then the steps of the one replica start and end when they would with all replicas played; only
/// if two steps request one link at the same instant may the order of issue differ.
#pragma once

#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// What a replica does on links: a way from a memory of its own to one of its own, or of another replica.
struct ReplicaWay {
  std::uint32_t from = 0, to = 0;  ///< groups of memories
  /// The replica that it leads to, of the one that is played; 0: it stays within.
  std::uint32_t to_replica = 0;
  std::uint32_t shifts = 0;  ///< how it is renamed, of several ways to do so
  friend bool operator==(const ReplicaWay&, const ReplicaWay&) = default;
};

/// How replicas are renamed: the number of one has a digit for each axis of the mesh that they make,
/// the first varies fastest, and to each digit t is added, or that of an axis that exchanges becomes
/// k xor t. Then that axis has 2, 4, 8, .. places.
struct ReplicaShifts {
  struct Axis {
    std::uint32_t size = 1;
    bool exchanges = false;
  };
  std::vector<Axis> axes;

  /// What `k` becomes with `t`.
  [[nodiscard]] std::uint32_t shifted(std::uint32_t k, std::uint32_t t) const;
  /// That with which `t` becomes 0.
  [[nodiscard]] std::uint32_t inverse(std::uint32_t t) const;
};

/// Whether replicas can be told apart, and what then stands for their links.
struct ReplicaSymmetry {
  std::string told_apart;  ///< by what; empty where they cannot be
  std::vector<LinkMirror>
      links;  ///< those that the played replica does not see, or not all uses of
};

/// All but the first of these conditions. `groups` are the memories of replicas, those that stand for each other
/// together, N in each: as many as the axes have places. Ways may be renamed differently, where collectives differ in
/// form: what counts is that all replicas take a way at the same times. O(N x ways x hops) and a search for routes
/// from every memory.
[[nodiscard]] ReplicaSymmetry replica_symmetry(const Problem& problem,
                                               const std::vector<std::vector<MemoryId>>& groups,
                                               const std::vector<ReplicaWay>& ways,
                                               std::span<const ReplicaShifts> shifts);

/// Empty, or which link draws power: that would be summed up for the replica that is played alone. O(links).
[[nodiscard]] std::string link_with_power(const Platform& platform);

/// The first of these conditions by itself: empty, or by what the devices of a stage are told apart.
[[nodiscard]] std::string unlike_devices(const Platform& platform,
                                         const std::vector<std::vector<ProcessorId>>& groups);

}  // namespace plimsoll
