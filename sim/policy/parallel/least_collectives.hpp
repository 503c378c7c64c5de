/// How long collectives take at least: their rounds one after the other, where the ranks of one group
/// have the links to themselves.
#pragma once

#include "plan/build/collective_choice.hpp"
#include "policy/interface/policy.hpp"
#include "policy/parallel/mesh_options.hpp"

#include <map>
#include <tuple>

namespace plimsoll {

class LeastCollectives {
 public:
  /// The arguments must outlive it, but for `spreading`.
  LeastCollectives(Spreading spreading, const MeshOptions& parallel, const Workload& workload,
                   const Platform& platform, const Topology& topology);
  LeastCollectives(const LeastCollectives&) = delete;
  LeastCollectives& operator=(const LeastCollectives&) = delete;

  /// Of an operator that is one, on the ranks like `processor` of the first. None where a way is
  /// missing. O(ranks of a group x distinct rounds), once for a size.
  [[nodiscard]] Time of(OperatorId op, ProcessorId processor);

 private:
  using Key = std::tuple<CollectiveKind, MeshAxis, bool, MemoryId, Bytes>;

  [[nodiscard]] Time time_of(const Collective& collective, MemoryId memory, Bytes bytes);

  const Workload& workload_;
  const Platform& platform_;
  const bool chooses_;
  Spreading spreading_;
  CollectiveChoice choice_;
  std::map<Key, Time> known_;
};

}  // namespace plimsoll
