#include "policy/remat/search/cut_bound.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <limits>

namespace plimsoll {
namespace {

constexpr std::int64_t kNoCut = std::numeric_limits<std::int64_t>::max() / 4;
__extension__ using Wide = __int128;

constexpr std::uint32_t cut_bit(std::uint32_t place) {
  return std::uint32_t{1} << place;
}

}  // namespace

/// Which choice of each stage led to each set, to follow the least cost back.
struct CutBound::Trace {
  struct From {
    std::uint32_t choice = 0, before = 0;
  };
  std::vector<std::vector<From>> by_stage;
  std::uint32_t end = 0;
};

CutBound::CutBound(const ChainModel& model, std::int64_t budget, std::uint32_t phase,
                   std::vector<std::uint32_t> cuts)
    : model_(model), phase_(phase), cuts_(std::move(cuts)), prices_(cuts_.size(), 0) {
  assert(cuts_.size() <= 7);
  for (const std::uint32_t t : cuts_) room_.push_back(budget - model.backward_need(t));
  // Costs stay below 2^61: forwards in all intervals below 2^58, prices as raise_prices() caps
  // them.
  const auto most = static_cast<std::uint64_t>(model.forward_before[phase] + 1) * 8;
  shift_ = std::max(0, 58 - static_cast<int>(std::bit_width(most)));

  const auto intervals = static_cast<std::uint32_t>(cuts_.size()) + 1;
  lists_.resize(std::size_t{intervals} * 6);
  for (std::uint32_t last = 0; last < intervals; ++last)
    for (const Begin begin : {nothing, output, saved})
      for (const bool held : {false, true}) list_choices(last, begin, held);
  stages_.resize(phase + 1);
  for (std::uint32_t i = 1; i <= phase; ++i) {
    Stage& stage = stages_[i];
    stage.last = static_cast<std::uint32_t>(
        std::ranges::count_if(cuts_, [&](std::uint32_t t) { return t > i; }));
    const bool held = stage.last > 0 && cuts_[stage.last - 1] == i + 1;
    for (const Begin begin : {nothing, output, saved})
      stage.choices[begin] = &lists_[(stage.last * 3 + begin) * 2 + (held ? 1 : 0)];
  }
  set_costs();
}

/// A stage whose backward is in interval `last`. Its last run is the kept one; before that its
/// output is at a cut where it can be read without a run in the interval that follows, and at the
/// last cut where backward t_last is to read it.
void CutBound::list_choices(std::uint32_t last, Begin begin, bool held_at_last) {
  auto& list = lists_[(last * 3 + begin) * 2 + (held_at_last ? 1 : 0)];
  const std::uint32_t all = cut_bit(last + 1) - 1;
  if (begin == saved) {
    list.push_back({0, all, 0, all & ~cut_bit(0)});
    return;
  }
  for (std::uint32_t runs = 1; runs <= all; ++runs) {
    const auto kept = static_cast<std::uint32_t>(std::bit_width(runs)) - 1;
    const std::uint32_t after =
        all & ~(cut_bit(kept + 1) - 1);  // intervals that begin with saved_i
    for (std::uint32_t readable = runs; readable <= all; readable = (readable + 1) | runs) {
      if ((readable & after) != after) continue;
      const bool at_begin = (readable & 1) != 0 && (runs & 1) == 0;
      if (at_begin && begin == nothing) continue;
      std::uint32_t outputs = readable & ~runs & ~after & ~cut_bit(0);
      if (held_at_last && kept == last && last > 0) outputs |= cut_bit(last);
      // What is at a cut could be read in the interval before it.
      const std::uint32_t before = begin == output ? readable | 1 : readable;
      if ((outputs >> 1 & ~before) != 0) continue;
      list.push_back({runs, readable, outputs, after});
    }
  }
}

void CutBound::set_costs() {
  std::vector<std::int64_t> price(cut_bit(static_cast<std::uint32_t>(cuts_.size()) + 1), 0);
  for (std::uint32_t set = 1; set < price.size(); ++set) {
    const auto lowest = static_cast<std::uint32_t>(std::countr_zero(set));
    price[set] = price[set & (set - 1)] + (lowest > 0 ? prices_[lowest - 1] : 0);
  }
  for (std::uint32_t i = 1; i <= phase_; ++i)
    for (const Begin begin : {nothing, output, saved}) {
      const auto& choices = *stages_[i].choices[begin];
      auto& cost = stages_[i].cost[begin];
      cost.resize(choices.size());
      for (std::size_t c = 0; c < choices.size(); ++c)
        cost[c] = (model_.forward[i] * std::popcount(choices[c].runs) << shift_) +
                  model_.output[i] * price[choices[c].output_at] +
                  model_.saved[i] * price[choices[c].saved_at];
    }
}

CutBound::Begin CutBound::begin_of(std::uint32_t stage, const ChainStore& store) const {
  if (stage >= 64) return nothing;
  if ((store.kept >> stage & 1) != 0) return saved;
  return (store.outputs >> stage & 1) != 0 ? output : nothing;
}

std::int64_t CutBound::evaluate(const ChainStore& store, Trace* trace) const {
  const std::uint32_t intervals = static_cast<std::uint32_t>(cuts_.size()) + 1;
  const std::uint32_t sets = cut_bit(intervals);
  model_.work.add(std::size_t{phase_} * sets);
  std::int64_t least[256], next[256];  // by the set of intervals in which a_i is readable
  std::uint32_t best[256];             // the superset that gives `least`
  std::fill_n(least, sets, kNoCut);
  least[sets - 1] = 0;
  if (trace) trace->by_stage.assign(phase_ + 1, std::vector<Trace::From>(sets));
  for (std::uint32_t i = 1; i <= phase_; ++i) {
    const Stage& stage = stages_[i];
    for (std::uint32_t set = 0; set < sets; ++set) {
      best[set] = set;
      if ((set >> stage.last & 1) == 0) least[set] = kNoCut;
    }
    for (std::uint32_t j = 0; j < intervals; ++j)
      for (std::uint32_t set = 0; set < sets; ++set)
        if ((set >> j & 1) == 0 && least[set | cut_bit(j)] < least[set]) {
          least[set] = least[set | cut_bit(j)];
          best[set] = best[set | cut_bit(j)];
        }
    std::fill_n(next, sets, kNoCut);
    const Begin begin = begin_of(i, store);
    const auto& choices = *stage.choices[begin];
    for (std::uint32_t c = 0; c < choices.size(); ++c) {
      const std::int64_t cost = least[choices[c].runs] + stage.cost[begin][c];
      if (cost >= next[choices[c].readable]) continue;
      next[choices[c].readable] = cost;
      if (trace) trace->by_stage[i][choices[c].readable] = {c, best[choices[c].runs]};
    }
    std::copy_n(next, sets, least);
  }
  const auto end = std::min_element(least, least + sets);
  if (trace) trace->end = static_cast<std::uint32_t>(end - least);
  std::int64_t value = *end;
  for (std::size_t j = 0; j < cuts_.size(); ++j) value -= prices_[j] * room_[j];
  return value;
}

/// The bytes beyond the room at each cut, in a schedule that attains the value.
std::vector<std::int64_t> CutBound::excess(const ChainStore& store, std::int64_t& value) const {
  Trace trace;
  value = evaluate(store, &trace);
  std::vector<std::int64_t> excess(cuts_.size());
  for (std::size_t j = 0; j < cuts_.size(); ++j) excess[j] = -room_[j];
  std::uint32_t set = trace.end;
  for (std::uint32_t i = phase_; i > 0; --i) {
    const Trace::From from = trace.by_stage[i][set];
    const Choice& choice = (*stages_[i].choices[begin_of(i, store)])[from.choice];
    for (std::uint32_t j = 0; j < cuts_.size(); ++j) {
      if ((choice.output_at >> (j + 1) & 1) != 0) excess[j] += model_.output[i];
      if ((choice.saved_at >> (j + 1) & 1) != 0) excess[j] += model_.saved[i];
    }
    set = from.before;
  }
  return excess;
}

void CutBound::raise_prices(const ChainStore& store, std::int64_t target, int steps) {
  const std::int64_t cap = (std::int64_t{1} << 57) / std::max<std::int64_t>(model_.store_all, 1);
  std::vector<std::int64_t> best = prices_;
  std::int64_t best_value = std::numeric_limits<std::int64_t>::min();
  int damping = 0, stale = 0;
  for (int step = 0; step < steps; ++step) {
    std::int64_t value = 0;
    const std::vector<std::int64_t> excess = this->excess(store, value);
    if (value > best_value) {
      best_value = value;
      best = prices_;
      stale = 0;
    } else if (++stale == 4) {
      prices_ = best;
      ++damping;
      stale = 0;
    }
    Wide norm = 0;
    for (std::size_t j = 0; j < excess.size(); ++j)
      if (excess[j] > 0 || prices_[j] > 0) norm += Wide{excess[j]} * excess[j];
    const Wide gap = (Wide{target} << shift_) - value;
    if (norm == 0 || gap <= 0) break;
    for (std::size_t j = 0; j < excess.size(); ++j) {
      const Wide price = prices_[j] + ((gap * excess[j]) >> damping) / norm;
      prices_[j] = static_cast<std::int64_t>(std::clamp<Wide>(price, 0, cap));
    }
    set_costs();
  }
  prices_ = best;
  set_costs();
}

std::int64_t CutBound::forward_time(const ChainStore& store) const {
  const std::int64_t value = evaluate(store, nullptr);
  const std::int64_t one = std::int64_t{1} << shift_;
  return value <= 0 ? 0 : (value + one - 1) / one;
}

std::int64_t time_bound(const ChainModel& model, std::int64_t budget, std::int64_t known,
                        std::size_t most_cuts) {
  constexpr std::uint32_t kPlaces = 16;
  constexpr int kSteps = 60;
  const std::int64_t rest = model.compute_time() - model.forward_before[model.stages];
  std::int64_t best = model.compute_time();
  std::vector<std::uint32_t> cuts;
  while (cuts.size() < most_cuts && best < known) {
    std::vector<std::uint32_t> best_cuts;
    for (std::uint32_t j = 0; j < kPlaces; ++j) {
      const std::uint32_t t = model.stages - model.stages * j / kPlaces;
      if (t < 2 || std::ranges::find(cuts, t) != cuts.end()) continue;
      std::vector<std::uint32_t> tried = cuts;
      tried.push_back(t);
      std::ranges::sort(tried, std::greater<>());
      CutBound bound(model, budget, model.stages, tried);
      bound.raise_prices({}, known - rest, kSteps);
      const std::int64_t value = bound.forward_time({}) + rest;
      if (value <= best) continue;
      best = value;
      best_cuts = std::move(tried);
    }
    if (best_cuts.empty()) break;
    cuts = std::move(best_cuts);
  }
  return best;
}

}  // namespace plimsoll
