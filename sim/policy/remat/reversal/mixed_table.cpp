#include "policy/remat/reversal/mixed_table.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

using Kind = ChainAction::Kind;
}  // namespace

std::int64_t MixedTable::work(std::int64_t steps, std::int64_t slots) {
  if (slots == 1 || steps <= slots + 1) return 0;
  std::int64_t work = steps * steps;
  if (__builtin_mul_overflow(work, slots, &work)) return kMostWork + 1;
  return work;
}

MixedTable::MixedTable(std::int64_t steps, std::int64_t slots)
    : steps_(steps), slots_(slots), forwards_(steps) {
  if (steps <= slots + 1) return;
  forwards_ = steps * (steps + 1) / 2 - 1;
  if (slots == 1) return;
  Row row(static_cast<std::size_t>(steps) + 1, 1);
  for (std::size_t n = 2; n < row.size(); ++n)
    row[n] = static_cast<std::int32_t>(n * (n + 1) / 2 - 1);
  advance_.assign(static_cast<std::size_t>(slots - 1) * row.size(), 0);
  for (std::int64_t s = 2; s <= slots; ++s) fill_row(s, row);
  forwards_ = row.back();
}

void MixedTable::fill_row(std::int64_t slots, Row& row) {
  std::uint32_t* const advance = &advance_[static_cast<std::size_t>(slots - 2) * row.size()];
  const std::size_t size = row.size();
  // Both ways round, so that the inner loop runs over neighbours.
  const Row reversed(row.rbegin(), row.rend());  // M(n, slots - 1) at size - 1 - n
  Row ahead(size);                               // i + M(i, slots)
  for (std::size_t n = 1; n < size; ++n) {
    if (n <= static_cast<std::size_t>(slots) + 1) {
      row[n] = static_cast<std::int32_t>(n);
    } else {
      const std::int32_t* const rest = &reversed[size - 1 - n];  // rest[i] = M(n - i, slots - 1)
      const std::int32_t tape = 1 + rest[1];
      std::int32_t best = tape;
      for (std::size_t i = 2; i < n; ++i) best = std::min(best, ahead[i] + rest[i]);
      row[n] = best;
      if (best < tape)
        for (std::size_t i = 2; advance[n] == 0; ++i)
          if (ahead[i] + rest[i] == best) advance[n] = static_cast<std::uint32_t>(i);
    }
    ahead[n] = static_cast<std::int32_t>(n) + row[n];
  }
}

std::int64_t MixedTable::advance(std::int64_t steps, std::int64_t slots) const {
  if (steps <= slots + 1) return 0;
  if (slots == 1) return steps - 1;
  return advance_[static_cast<std::size_t>((slots - 2) * (steps_ + 1) + steps)];
}

ChainSequence MixedTable::sequence() const {
  /// What is left to do, the last first: reverse `steps` from `begin`, or one backward alone.
  struct Task {
    std::int64_t begin, steps, slots;
    bool backward_only;
  };
  std::vector<Task> tasks{{0, steps_, slots_, false}};
  ChainSequence sequence;
  const auto add = [&](Kind kind, std::int64_t stage) {
    sequence.push_back({kind, static_cast<std::uint32_t>(stage)});
  };
  while (!tasks.empty()) {
    const auto [begin, steps, slots, backward_only] = tasks.back();
    tasks.pop_back();
    if (backward_only || steps == 1) {
      if (!backward_only) add(Kind::keep, begin);
      add(Kind::backward, begin);
    } else if (const std::int64_t i = advance(steps, slots); i == 0) {
      add(Kind::keep, begin);
      tasks.push_back({begin, 1, slots, true});
      tasks.push_back({begin + 1, steps - 1, slots - 1, false});
    } else {
      for (std::int64_t s = begin; s < begin + i; ++s) add(Kind::bare, s);
      tasks.push_back({begin, i, slots, false});
      tasks.push_back({begin + i, steps - i, slots - 1, false});
    }
  }
  return sequence;
}

}  // namespace plimsoll
