#include "policy/order/beam_order.hpp"

#include "policy/order/beam.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::size_t kWider = 4;
/// Steps down are no smaller than this share of the peak.
constexpr std::int64_t kFinest = 2000;

class BeamOrder {
 public:
  BeamOrder(const OrderGraph& graph, std::int64_t bound, std::int64_t known,
            const BeamOptions& options, const Work& work)
      : graph_(graph),
        back_(reversed(graph)),
        bound_(bound),
        least_(known),
        options_(options),
        work_(work) {}

  std::optional<std::vector<std::uint32_t>> run() {
    for (std::size_t width = 1; width <= options_.width && !is_over(); width *= kWider)
      step_down(width);
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool is_over() const { return least_ <= bound_ || looks_ >= looks_allowed(); }

  [[nodiscard]] std::size_t looks_allowed() const {
    return options_.looks + options_.looks_per_node * graph_.nodes();
  }

  /// In steps that shrink where the beam dies out; wider beams begin with smaller ones.
  void step_down(std::size_t width) {
    if (!try_ways(width, least_ - 1)) return;
    std::int64_t step = (least_ - bound_) / static_cast<std::int64_t>(2 * width);
    while (!is_over() && step > least_ / kFinest)
      if (!try_ways(width, least_ - step)) step /= 3;
  }

  /// A direction in time, and what a state does first.
  struct Way {
    bool is_back = false;
    Ranking first = Ranking::valley;
  };

  /// Forwards and backwards, and single states by each ranking: first as the last order was found.
  bool try_ways(std::size_t width, std::int64_t room) {
    const std::size_t rankings = width == 1 ? kRankings : 1;
    const Way last = way_;
    for (std::size_t turn = 0; turn < rankings; ++turn)
      for (const bool turns_back : {false, true}) {
        const auto first = (static_cast<std::size_t>(last.first) + turn) % kRankings;
        if (is_over()) return false;
        if (try_room(width, room, {last.is_back != turns_back, static_cast<Ranking>(first)}))
          return true;
      }
    return false;
  }

  bool try_room(std::size_t width, std::int64_t room, const Way& way) {
    Beam beam(way.is_back ? back_ : graph_, width, way.first);
    auto order = beam.run(room, looks_allowed() - looks_);
    looks_ += beam.looks();
    work_.add(beam.looks() * kWorkOfLook);
    if (!order) return false;
    if (way.is_back) std::ranges::reverse(*order);
    way_ = way;
    least_ = peak_of(graph_, *order);
    best_ = std::move(order);
    return true;
  }

  static constexpr std::size_t kWorkOfLook = 20;

  const OrderGraph& graph_;
  const OrderGraph back_;
  const std::int64_t bound_;
  std::int64_t least_;
  const BeamOptions options_;
  const Work& work_;
  std::size_t looks_ = 0;
  Way way_;  ///< in which the last order was found
  std::optional<std::vector<std::uint32_t>> best_;
};

}  // namespace

std::optional<std::vector<std::uint32_t>> beam_order(const OrderGraph& graph, std::int64_t bound,
                                                     std::int64_t known, const BeamOptions& options,
                                                     const Work& work) {
  return BeamOrder(graph, bound, known, options, work).run();
}

}  // namespace plimsoll
