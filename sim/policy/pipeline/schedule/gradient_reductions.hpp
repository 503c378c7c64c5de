/// The all-reduces of gradients.
///
/// Every replica of a stage, or both copies of one that is held twice, ends with gradients of its
/// own microbatches, and every holder of a parameter that slots share with those of its own slots
/// (tied_gradients.hpp); an all-reduce (plan/build/collective.hpp) gives each the sum. There is one
/// gradient buffer, so the all-reduce starts from its current content, and steps that add to the
/// gradients afterwards wait until it has ended.
#pragma once

#include "plan/build/collective.hpp"
#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/schedule/slots.hpp"
#include "policy/pipeline/schedule/tied_gradients.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// Throws InputError where one replica is to be played for all of them, and devices of a stage or
/// their memories differ: for planners that look at a platform without limits first.
void require_alike_replicas(const Problem& problem, const PipelineParameters& parameters);

class GradientReductions {
 public:
  /// The copies of a pipeline's parameters: the stages as placed for each of them.
  using Copies = std::vector<const Slots*>;

  /// How often slots reduce, and whether each does so for itself, while others go on: then tied
  /// gradients are reduced like all others of their slot, among its replicas.
  struct Times {
    std::size_t count = 1;
    bool one_by_one = false;
  };

  /// The arguments must outlive it. Where there is one of several copies, and the parameters say
  /// that it is played for all, the others become its mirrors; `partners` are those of
  /// Schedule::partners. Throws InputError where that cannot be
  /// (policy/pipeline/schedule/replica_symmetry.hpp), where a tree has no power of two of copies,
  /// where no link joins two of them, where they are too many to be played, or where they live in another memory
  /// than their processor's.
  GradientReductions(const Problem& problem, const PipelineParameters& parameters,
                     const Copies& copies, const std::vector<std::uint32_t>& partners, Times times,
                     PlanBuilder& builder);

  /// Adds the all-reduce of what the backwards of a slot have made so far, but for tied gradients,
  /// around a ring in the order of the parameters' devices. Its ends are of the memories in that
  /// order, each once.
  AllReduceEnds add(std::size_t slot);

  /// Adds the all-reduces of tied gradients.
  void add_tied();

 private:
  /// One all-reduce of several: of holders that are played, or of the replicas of one of them.
  struct Ring {
    std::vector<MemoryId> members;
    bool is_folded = false;
  };

  void refuse_state_elsewhere() const;
  void check(const std::vector<MemoryId>& members, bool is_folded, std::size_t times) const;
  [[nodiscard]] std::vector<Ring> rings_of(const TiedGradients& tied,
                                           const std::vector<std::vector<ProcessorId>>& groups,
                                           const std::vector<std::size_t>& places) const;
  void fold(const std::vector<std::vector<ProcessorId>>& groups,
            const std::vector<std::uint32_t>& partners);

  const Problem& problem_;
  const PipelineParameters& parameters_;
  const Slots& slots_;
  PlanBuilder& builder_;
  bool is_folded_ = false;
  std::vector<std::vector<MemoryId>> members_;    ///< by slot
  std::vector<std::vector<TensorId>> gradients_;  ///< by slot, but for tied ones
  std::vector<TiedGradients> tied_;
  std::vector<std::vector<Ring>> rings_;  ///< of each, one after the other
};

}  // namespace plimsoll
