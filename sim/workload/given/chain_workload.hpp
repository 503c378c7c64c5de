/// The abstract chain of the literature: stages with given times and sizes.
///
///   F_i  reads a_{i-1}; keep leaves saved_i, which contains a_i; checkpoint and drop leave a_i
///   B_i  reads delta_i, saved_i and a_{i-1}, makes delta_{i-1} (the last one delta_L, too) and, if
///        the stage has parameters, their gradient
///
/// a_0 is an input of the step, delta_0 stays; parameters and optimizer state are resident. The
/// loss after the last stage takes no time and no memory, neither does the optimizer of a stage
/// that gives no `optimizer_step`.
///
/// With `split_backward` B_i is `backward_input`, and `backward_weight` follows. saved_i is then
/// made of two tensors: `held`, which the second half reads, and the rest, which only the first
/// half needs. The energy of the backward is charged to the first half.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/core/workload_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct StageEnergy {
  std::optional<Energy> forward, backward;
};

struct StageSpec {
  Location where;
  std::string name;
  Time forward;
  std::optional<Time> backward, backward_input, backward_weight;
  Bytes output, saved;
  std::optional<Bytes> held_for_weight_gradient;  ///< default: all of saved
  std::optional<Bytes> gradient;                  ///< of delta_i; default: the size of the output
  Bytes parameters, forward_workspace, backward_workspace;
  std::optional<Time> optimizer_step;
  StageEnergy energy;
};

struct ChainSpec {
  Location where;
  std::string name;
  Bytes input;  ///< a_0
  std::vector<StageSpec> stages;
  std::optional<std::int64_t> batch;
  std::optional<Optimizer> optimizer;
  std::optional<Time> step_overhead;
};

/// How a chain is written. Reading checks all that can be checked without options: stage names are
/// unique, saved is at least output, held at most saved, and a stage gives its backward or both
/// halves.
[[nodiscard]] Format<ChainSpec> chain_format();

/// O(stages). Throws InputError: a split backward of a stage that gives only the whole.
[[nodiscard]] Workload build(const ChainSpec& chain, const WorkloadOptions& options);

}  // namespace plimsoll
