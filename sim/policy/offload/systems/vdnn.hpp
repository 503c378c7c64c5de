/// The layer-wise rule of vDNN, which its variants share.
///
/// Rhu, Gimelshein, Clemons, Zulfiqar, Keckler, "vDNN: Virtualized Deep Neural Networks for
/// Scalable, Memory-Efficient Neural Network Design", MICRO 2016 (arXiv:1602.08124).
///
/// The unit is the input X_n of a layer n. Its copy out runs during forward n, the last forward
/// that reads it; forward n+1 waits for both; then X_n is freed. When backward n starts, the layers
/// n-1, n-2, ... are searched for the first with an input that is away, and its copy in starts; the
/// search ends at the first convolution that it meets. Both streams meet again at the end of
/// backward n. On a chain the makespan is therefore the sum over layers of the longer of operator
/// and copy.
///
/// Reconstructed, not the authors' code: the search and the barriers are those of the public
/// re-implementation james98kr/vDNN_Implementation. Choices where it leaves one open or a workload
/// has more than its chains of layers: a layer is a forward operator (a stage of an abstract
/// chain); only what a later layer reads and a backward needs is an input in this sense; the
/// network's own input is resident and the last layer's input is needed back at once, so neither
/// moves; what a backward reads and has not been fetched is fetched when that backward is next.
#pragma once

#include "policy/offload/copies/storage.hpp"

#include <string>

namespace plimsoll {

struct VdnnRule {
  enum class Layers { none, convolutions, all };
  Layers layers = Layers::all;  ///< whose inputs move; all stages of a chain are convolutions
  bool meets_at_layer_end =
      true;  ///< false: vDNN++, no operator waits for a copy that it can spare
};

/// Uses at most `limit` of the processor's memory. O(operators + reads), and O(layers) more for
/// each layer where no convolution ends the search.
[[nodiscard]] Plan vdnn_plan(const Problem& problem, const OffloadMemories& memories, VdnnRule rule,
                             const std::string& policy, Bytes limit = Bytes::unlimited());

}  // namespace plimsoll
