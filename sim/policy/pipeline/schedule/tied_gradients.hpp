/// Gradients of parameters that slots of several devices share: of a weight that one layer uses as
/// that of another, such as a language model's embedding and head.
///
/// Every device that holds the parameter ends with the gradients of its own slots. Before the
/// optimizer they are added up, and each holder updates its own copy of the parameter, with its own
/// state. As Megatron-LM does it ("finalize_model_grads"), the replicas of a holder reduce theirs
/// first, then the holders of each replica. Where replicas of one holder are holders of another
/// kind, too, or are not as many, one all-reduce goes around all of them.
#pragma once

#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct Holder {
  std::uint32_t device = 0;
  MemoryId memory{};
};

struct TiedGradients {
  std::vector<TensorId> gradients;
  std::size_t first_slot = 0;  ///< of those that make them
  /// By copy of the pipeline's parameters: its holders, each memory once, in the order of devices.
  std::vector<std::vector<Holder>> holders;

  /// Whether each copy has as many holders, and no two have one in common.
  [[nodiscard]] bool is_grid() const;
  /// All of them, each memory once.
  [[nodiscard]] std::vector<Holder> all_holders() const;
};

/// Those that several slots make: gradients that the same ones make are together. `copies` are the
/// slots as placed for each copy of the parameters; copies with the same holders count once.
/// O(slots + gradients log gradients).
[[nodiscard]] std::vector<TiedGradients> tied_gradients(const std::vector<const Slots*>& copies);

}  // namespace plimsoll
