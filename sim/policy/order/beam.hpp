/// One beam search for an order that fits in a room.
#pragma once

#include "policy/order/look_ahead.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace plimsoll {

/// Which chains a beam goes on with: at each state it takes the best of each ranking in turn.
enum class Ranking : std::uint8_t {
  valley,  ///< least is there at its end
  fall,    ///< its hill is highest above its valley: first, while there is room for hills
  latest,  ///< it has been able to run for the shortest time: depth first
  given    ///< as in the order of the workload
};
inline constexpr std::size_t kRankings = 4;

class Beam {
 public:
  /// `graph` must outlive it.
  Beam(const OrderGraph& graph, std::size_t width, Ranking first);

  /// Nothing where the beam dies out, or has looked at `most_looks` nodes. O(width nodes looks), and
  /// O(nodes + values) for each state that is copied.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> run(std::int64_t room,
                                                              std::size_t most_looks);

  [[nodiscard]] std::size_t looks() const { return look_.looks() + copied_; }

 private:
  /// What ran, as a chain of places in trace_.
  struct Trace {
    std::uint32_t before = 0, node = 0;
  };
  struct State {
    OrderState at;
    std::uint32_t trace = 0;
    std::uint64_t hash = 0;  ///< of the nodes that have run
  };
  /// A state, or one and a chain that runs next.
  struct Entry {
    std::int64_t there = 0;
    std::uint64_t hash = 0;
    std::shared_ptr<State> state;
    Chain chain;
  };

  void run_chain(State& state, const Chain& chain);
  [[nodiscard]] std::shared_ptr<State> state_of(Entry entry);
  void keep_best(std::vector<Entry>& entries) const;
  /// Runs what is safe, and adds what may come next to the fronts; whether all nodes have run.
  [[nodiscard]] bool advance(const std::shared_ptr<State>& state, std::int64_t room);
  void branch(const std::shared_ptr<State>& state, std::span<const Chain> chains);
  [[nodiscard]] bool is_better(Ranking ranking, const Chain& a, const Chain& b) const;
  [[nodiscard]] std::vector<std::uint32_t> order_of(const State& state) const;

  const OrderGraph& graph_;
  const std::size_t width_;
  const Ranking first_;
  std::vector<std::uint32_t> place_;  ///< by node, in the given order
  LookAhead look_;
  std::size_t copied_ = 0;  ///< states, in looks
  std::vector<Trace> trace_;
  std::map<std::size_t, std::vector<Entry>> fronts_;  ///< by how many nodes have run
};

}  // namespace plimsoll
