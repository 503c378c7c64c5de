/// Good orders of graphs of any size, by beam search within a room that shrinks.
///
/// A beam holds, for each number of nodes that have run, the states in which least is there. Each
/// first runs the safe chains that it finds (look_ahead.hpp), and then branches over the best chains
/// of several rankings. Rounds go forwards and backwards in time, since an order and its reverse
/// need the same, and with ever wider beams.
#pragma once

#include "base/work.hpp"
#include "policy/order/order_graph.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct BeamOptions {
  std::size_t width = 64;  ///< of the widest beam
  /// Nodes that may be looked at in all rounds: about 30 ns each.
  std::size_t looks = 100'000'000, looks_per_node = 10'000;
};

/// An order whose peak is below `known`, the best that is found; nothing where none is.
/// Deterministic: its end is counted in looks.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> beam_order(const OrderGraph& graph,
                                                                   std::int64_t bound,
                                                                   std::int64_t known,
                                                                   const BeamOptions& options,
                                                                   const Work& work);

}  // namespace plimsoll
