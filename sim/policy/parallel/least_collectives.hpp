/// How long collectives take at least: their rounds one after the other, where the ranks of one group
/// have the links to themselves.
#pragma once

#include "plan/build/collective_choice.hpp"
#include "policy/interface/policy.hpp"
#include "policy/parallel/mesh_options.hpp"

#include <map>
#include <span>
#include <tuple>
#include <vector>

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

  /// Throws InputError, at the mesh, where ranks that run the step as one stage exchange or reduce something, and
  /// no form of that has a way between all that need one. O(collectives that differ x ranks x distinct rounds).
  void require_ways();

 private:
  using Key = std::tuple<CollectiveKind, MeshAxis, bool, MemoryId, Bytes>;

  [[nodiscard]] Time time_of(const Collective& collective, MemoryId memory, Bytes bytes);
  [[nodiscard]] CollectiveForm form_of(const Collective& collective,
                                       std::span<const MemoryId> memories, Bytes bytes);
  [[nodiscard]] std::vector<Collective> all_of_step() const;
  [[noreturn]] void refuse_ways(const Collective& collective, const CollectiveForm& form,
                                std::span<const MemoryId> memories) const;

  const Workload& workload_;
  const Platform& platform_;
  const Location where_;
  const bool chooses_;
  Spreading spreading_;
  CollectiveChoice choice_;
  std::map<Key, Time> known_;
};

}  // namespace plimsoll
