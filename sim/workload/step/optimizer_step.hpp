/// The last operators of a step: the passes over all gradients, then the updates.
///
/// In Muon an update comes after the orthogonalization of the layer's hidden matrices, in place of their
/// gradients, with the momentum. Where ranks, or memories, have parts of matrices or moments
/// (`momentum_is_apart`), the momentum makes a direction in bf16 of what the rank has; the ranks of a tensor
/// axis gather the whole, and each of them makes all of that orthogonal and updates its part: the mode
/// `duplicated` of NVIDIA's emerging-optimizers (`newton_schulz_tp`), and, over ranks that divide state
/// (workload/sharding/sharded_step.hpp), algorithm 1 of J. Liu and others, "Muon is scalable for LLM
/// training", arXiv 2502.16982.
#pragma once

#include "workload/core/workload_builder.hpp"
#include "workload/step/training_step.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// A parameter with a gradient.
struct UpdatedParameter {
  TensorId tensor = kNoTensor, gradient = kNoTensor;
  Dims trained;             ///< the part that is trained
  Bytes trained_bytes;      ///< of that part
  bool is_in_int8 = false;  ///< it and its gradient have 8 bits or fewer
  bool is_hidden = false;   ///< a matrix between the embeddings and the last layer
  Dims whole;  ///< what is trained of all ranks of a tensor axis, which may be the same
};

struct UpdatedLayer {
  std::string name;
  OperatorClass operator_class = OperatorClass::other;
  std::vector<UpdatedParameter> parameters;  ///< at least one
};

/// Adds them, an operator a layer each: where the loss is scaled, the division of gradients; where
/// gradients are clipped, their norms and then their scaling; the updates, in Muon each after the
/// orthogonalization of its hidden matrices. What is in 8 bits is updated in place, without
/// temporaries. O(layers + parameters). Throws QuantityOverflow.
void add_optimizer_step(WorkloadBuilder& builder, const std::vector<UpdatedLayer>& layers,
                        const StepOptions& options);

}  // namespace plimsoll
