/// The buckets in which ranks reduce gradients and gather parameters: which, and after which step.
///
/// Gradients are taken in the order in which the last addition to each is made, parameters in that
/// of their updates. A bucket takes tensors of one memory, of experts or of all else, until it holds as many bytes as it may, the
/// last one whole: so does PyTorch's DistributedDataParallel, with 1 MiB for the first bucket and
/// 25 MiB for the others (S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data
/// Parallel Training", VLDB 2020, section 3.2; torch.nn.parallel.DistributedDataParallel,
/// `bucket_cap_mb`).
///
/// Where ranks hold gradients in parts, and several groups do (Spreading::has_copies()), the parts that one
/// reduce-scatter leaves are one bucket, as in PyTorch's FSDP.
///
/// Gradients of which ranks of the tensor axis make parts (Tensor::is_partial) are added up over that
/// axis in one bucket of a memory, once the last is made and what reduces them over the data axis is
/// issued: sums commute, and so they hold up no other bucket.
#pragma once

#include "plan/build/spreading.hpp"

#include <vector>

namespace plimsoll {

struct GradientBucket {
  Collective collective;
  MemoryId memory{};
  std::vector<BufferId> buffers;
  /// What used them until then: of every stream the last step, and all moves.
  std::vector<StepId> users;
  StepId after_step{};  ///< the last of them: the bucket is issued right after it
};

/// By `after_step`. Throws std::invalid_argument for a plan whose backwards go on after an update.
[[nodiscard]] std::vector<GradientBucket> buckets_of(const Plan& plan, const Workload& workload,
                                                     const Spreading& spreading);

}  // namespace plimsoll
