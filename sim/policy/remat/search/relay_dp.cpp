#include "policy/remat/search/relay_dp.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;

constexpr std::int64_t kNoSchedule = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t kMostCells = std::size_t{1} << 27;  // 1 GiB

enum class Part : std::uint8_t { whole, relayed };  ///< C and D

/// A first move from a_{s-1}: bare up to stage k - 1, then store its output or keep k.
struct Move {
  bool stores = false;
  std::uint32_t k = 0;
};

/// One of C(s,t,.) and D(s,t,.): the time of its bare forwards by memory, infinite below `least`,
/// zero from `enough` on.
struct Row {
  std::int64_t least = kNoSchedule, enough = 0;
  std::size_t at = 0;  ///< of m = least
};

/// What a move needs and what it leaves to do: `now` units at once, the right part beside `held`
/// units, the left part (may be absent: a backward that is checked in `now`).
struct Split {
  std::int64_t now = 0, held = 0, time = 0;
  const Row* right = nullptr;
  const Row* left = nullptr;
};

class Table {
 public:
  /// With moves to each `distance`-th stage only (and to the first of a row, which every row has).
  Table(const ChainModel& model, std::int64_t unit, ChainClass of, std::uint32_t distance = 1)
      : model_(model), unit_(unit), relays_(of == ChainClass::relay), distance_(distance) {
    const std::size_t n = model.stages + 2;
    for (auto& rows : rows_) rows.resize(n * n);
  }

  /// What each row needs at least and at most: `least` and `enough`.
  void fill_ends() {
    for_rows([&](Part what, std::uint32_t s, std::uint32_t t) { fill_ends(what, s, t); });
  }

  /// How many values there are between, up to `most`. Fewer moves make it no more, since a row then
  /// needs no less and saturates where it did. Precondition: fill_ends(). Throws std::length_error.
  std::size_t place_cells(std::int64_t most) {
    std::size_t count = 0;
    for_rows([&](Part what, std::uint32_t s, std::uint32_t t) {
      Row& it = row(what, s, t);
      it.at = count;
      if (it.least < end_of(it, most))
        count += static_cast<std::size_t>(end_of(it, most) - it.least);
      if (count > kMostCells) throw std::length_error("the table of schedules passes 1 GiB");
    });
    return count;
  }

  /// The values between, up to `most`. Precondition: fill_ends(). Throws std::length_error.
  void fill_cells(std::int64_t most) {
    cells_.assign(place_cells(most), kNoSchedule);
    has_cells_ = true;
    for_rows([&](Part what, std::uint32_t s, std::uint32_t t) {
      const Row& it = row(what, s, t);
      if (it.least >= end_of(it, most)) return;
      for_moves(what, s, t, [&](Move, const Split& step) { relax(it, end_of(it, most), step); });
    });
  }

  [[nodiscard]] const Row& whole() const { return row(Part::whole, 1, model_.stages); }

  void emit(Part what, std::uint32_t s, std::uint32_t t, std::int64_t m, ChainSequence& out) {
    if (what == Part::relayed && s == t) {
      out.push_back({Kind::backward, s - 1});
      return;
    }
    const Move move = best_move(what, s, t, m);
    for (std::uint32_t j = s; j < move.k; ++j) out.push_back({Kind::bare, j - 1});
    if (move.stores) {
      emit(what, move.k, t, m - units(model_.output[move.k - 1]), out);
      emit(Part::whole, s, move.k - 1, m, out);
      return;
    }
    out.push_back({Kind::keep, move.k - 1});
    if (move.k < t) emit(what, move.k + 1, t, m - units(model_.saved[move.k]), out);
    emit(Part::relayed, s, move.k, m, out);
  }

 private:
  [[nodiscard]] std::int64_t units(std::int64_t bytes) const { return (bytes + unit_ - 1) / unit_; }
  [[nodiscard]] const Row& row(Part what, std::uint32_t s, std::uint32_t t) const {
    return rows_[static_cast<std::size_t>(what)][s * (model_.stages + 2) + t];
  }
  Row& row(Part what, std::uint32_t s, std::uint32_t t) {
    return rows_[static_cast<std::size_t>(what)][s * (model_.stages + 2) + t];
  }
  [[nodiscard]] std::int64_t value(const Row& row, std::int64_t m) const {
    if (m >= row.enough) return m < row.least ? kNoSchedule : 0;
    return m < row.least ? kNoSchedule : cells_[row.at + static_cast<std::size_t>(m - row.least)];
  }

  /// Of all that (s,t) has beside what its moves add.
  [[nodiscard]] std::int64_t around(Part what, std::uint32_t t) const {
    return model_.fixed(t) - model_.resident + (what == Part::relayed ? model_.saved[t] : 0);
  }
  [[nodiscard]] std::int64_t backward_units(std::uint32_t s) const {
    return units(model_.backward_need(s) - model_.resident);
  }

  /// Calls visit(Move, Split) for each move.
  template <class Visit>
  void for_moves(Part what, std::uint32_t s, std::uint32_t t, Visit visit) const {
    const std::int64_t around = this->around(what, t);
    const bool relayed = what == Part::relayed;
    std::int64_t bare = 0;  // bytes of the run s..k-1
    for (std::uint32_t k = s; k <= t; ++k) {
      const std::int64_t input = k > s ? model_.output[k - 1] : 0;
      const std::int64_t time = model_.forward_before[k - 1] - model_.forward_before[s - 1];
      if (k > s) {
        const std::int64_t before = k - 1 > s ? model_.output[k - 2] : 0;
        bare = std::max(bare, around + before + input + model_.bare_workspace[k - 1]);
        if (k % distance_ != 0) continue;
        visit(Move{true, k}, Split{units(bare), units(input), time, &row(what, k, t),
                                   &row(Part::whole, s, k - 1)});
      }
      if ((k > s && !relays_) || (relayed && k == t)) continue;
      const std::int64_t keep = around + input + model_.saved[k] + model_.keep_workspace[k];
      visit(Move{false, k},
            Split{units(std::max(bare, keep)), units(model_.saved[k]), time,
                  k < t ? &row(what, k + 1, t) : nullptr, &row(Part::relayed, s, k)});
    }
  }

  /// Parts before those that are made of them.
  template <class Visit>
  void for_rows(Visit visit) {
    for (std::uint32_t t = 1; t <= model_.stages; ++t)
      for (std::uint32_t s = t; s > 0; --s)
        for (const Part what : {Part::relayed, Part::whole})
          if (what == Part::whole || relays_ || s == t) visit(what, s, t);
  }

  static std::int64_t end_of(const Row& row, std::int64_t most) {
    return std::min(row.enough, most + 1);
  }

  void fill_ends(Part what, std::uint32_t s, std::uint32_t t) {
    Row& it = row(what, s, t);
    if (what == Part::relayed && s == t) {
      it.least = it.enough = backward_units(s);
      return;
    }
    model_.work.add(std::size_t{t - s + 1});
    for_moves(what, s, t, [&](Move move, const Split& step) {
      std::int64_t need = std::max(step.now, step.left->least);
      if (step.right) need = std::max(need, step.right->least + step.held);
      it.least = std::min(it.least, need);
      if (move.stores || move.k > s) return;
      it.enough = std::max(step.now, step.left->enough);
      if (step.right) it.enough = std::max(it.enough, step.right->enough + step.held);
    });
  }

  /// The four pieces of a sum of two rows, each given by cells or zero, so that the loops are bare.
  void relax(const Row& it, std::int64_t end, const Split& step) {
    const Row none{kNoSchedule, 0, 0};
    const Row& right = step.right ? *step.right : none;
    std::int64_t m = std::max({it.least, step.now, step.left->least});
    if (step.right) m = std::max(m, right.least + step.held);
    const std::int64_t right_zero = step.right ? right.enough + step.held : 0;
    std::int64_t* const cells = cells_.data();
    const auto place = [](const Row& row) { return static_cast<std::int64_t>(row.at) - row.least; };
    const std::int64_t to = place(it), from_left = place(*step.left);
    const std::int64_t from_right = place(right) - step.held, time = step.time;
    // Times fall with memory: from where the row is down to the bare run itself, nothing is gained.
    const auto better = std::partition_point(cells + to + std::min(m, end), cells + to + end,
                                             [&](std::int64_t known) { return known > time; });
    end = better - cells - to;
    model_.work.add(1 + std::max<std::int64_t>(end - m, 0));
    for (const std::int64_t stop = std::min({end, right_zero, step.left->enough}); m < stop; ++m)
      cells[to + m] = std::min(cells[to + m], time + cells[from_right + m] + cells[from_left + m]);
    for (const std::int64_t stop = std::min(end, right_zero); m < stop; ++m)
      cells[to + m] = std::min(cells[to + m], time + cells[from_right + m]);
    for (const std::int64_t stop = std::min(end, step.left->enough); m < stop; ++m)
      cells[to + m] = std::min(cells[to + m], time + cells[from_left + m]);
    for (; m < end; ++m) cells[to + m] = std::min(cells[to + m], time);
  }

  /// The first move of least time within m; without cells, the first that fits.
  Move best_move(Part what, std::uint32_t s, std::uint32_t t, std::int64_t m) const {
    Move best;
    std::int64_t least = kNoSchedule;
    for_moves(what, s, t, [&](Move move, const Split& step) {
      if (m < step.now || m < step.left->least) return;
      if (step.right && m - step.held < step.right->least) return;
      std::int64_t time = step.time;
      if (has_cells_) {
        time += value(*step.left, m);
        if (step.right) time += value(*step.right, m - step.held);
      } else {
        time = 0;
      }
      if (time >= least) return;
      least = time;
      best = move;
    });
    return best;
  }

  const ChainModel& model_;
  std::int64_t unit_;
  bool relays_, has_cells_ = false;
  std::uint32_t distance_;
  std::vector<Row> rows_[2];
  std::vector<std::int64_t> cells_;
};

/// The greatest unit in which all sizes are whole.
std::int64_t common_unit(const ChainModel& model) {
  std::int64_t unit = 0;
  for (const auto* sizes :
       {&model.output, &model.saved, &model.gradient, &model.keep_workspace, &model.bare_workspace,
        &model.backward_workspace, &model.lasting, &model.gone_in_backward})
    for (const std::int64_t size : *sizes) unit = std::gcd(unit, size);
  return std::max<std::int64_t>(unit, 1);
}

/// Throws std::length_error where a fraction of the moves tells that the table will be too large,
/// at a fraction of the time of its ends.
void foresee_size(const ChainModel& model, std::int64_t unit, std::int64_t most, ChainClass of) {
  constexpr std::uint32_t kDistance = 16;
  if (model.stages < 8 * kDistance) return;
  Table sparse(model, unit, of, kDistance);
  sparse.fill_ends();
  if (sparse.whole().least <= most) sparse.place_cells(most);
}

/// Some schedule within `room` bytes: any move that fits does.
ChainSequence any_schedule(const ChainModel& model, std::int64_t room, ChainClass of) {
  Table table(model, 1, of);
  table.fill_ends();
  ChainSequence sequence;
  table.emit(Part::whole, 1, model.stages, room, sequence);
  return sequence;
}

}  // namespace

std::optional<ClassOptimum> class_optimum(const ChainModel& model, std::int64_t budget,
                                          std::int64_t slots, ChainClass of) {
  const std::int64_t room = std::min(budget, model.store_all) - model.resident;
  const std::int64_t common = common_unit(model);
  const std::int64_t unit = std::max(common, (room + slots - 1) / std::max<std::int64_t>(slots, 1));
  const std::int64_t most = room / unit;
  if (budget >= model.after_need) foresee_size(model, unit, most, of);
  if (budget < least_budget(model, of)) return std::nullopt;

  Table table(model, unit, of);
  table.fill_ends();
  if (table.whole().least > most) return ClassOptimum{any_schedule(model, room, of), true};
  table.fill_cells(most);
  ClassOptimum optimum{{}, unit != common};
  table.emit(Part::whole, 1, model.stages, most, optimum.sequence);
  return optimum;
}

std::int64_t least_budget(const ChainModel& model, ChainClass of) {
  Table table(model, 1, of);
  table.fill_ends();
  return std::max(model.resident + table.whole().least, model.after_need);
}

std::optional<ClassOptimum> relay_schedule(const ChainModel& model, const ChainCosts& costs,
                                           std::int64_t budget, std::int64_t slots, int retries) {
  auto best = class_optimum(model, budget, slots, ChainClass::relay);
  if (!best || !best->rounded) return best;
  Time least = cost_of(best->sequence, costs).time;
  std::int64_t fits = budget, slack = budget - cost_of(best->sequence, costs).peak.count();
  std::int64_t too_much = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < retries && slack > 0; ++i) {
    // What was left free at `fits` tells how much rounding hides; then halve.
    const std::int64_t tried = too_much == std::numeric_limits<std::int64_t>::max()
                                   ? fits + slack
                                   : fits + (too_much - fits) / 2;
    auto next = class_optimum(model, tried, slots, ChainClass::relay);
    const SequenceCost cost = cost_of(next->sequence, costs);
    if (cost.peak.count() > budget) {
      too_much = tried;
      continue;
    }
    fits = tried;
    slack = budget - cost.peak.count();
    if (cost.time >= least) continue;
    least = cost.time;
    best = std::move(next);
  }
  return best;
}

}  // namespace plimsoll
