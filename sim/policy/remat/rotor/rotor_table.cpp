#include "policy/remat/rotor/rotor_table.hpp"

#include <algorithm>

namespace plimsoll {

std::vector<std::int64_t> most_stored(const RotorChain& chain) {
  std::vector<std::int64_t> stored{0};
  for (std::size_t s = 0; s + 1 < chain.stages(); ++s)
    stored.push_back(std::min(stored.back() + chain.saved[s], chain.units));
  return stored;
}

RotorTable::RotorTable(const RotorChain& chain, std::int64_t limit,
                       const std::vector<bool>& checkpoints, std::int64_t most_values, Holds holds)
    : chain_(chain),
      limit_(std::min(limit, kNever - 1)),
      most_values_(most_values),
      holds_(holds),
      checkpoints_(checkpoints),
      rows_(place(0, chain.stages()), Row{nullptr, static_cast<std::int32_t>(chain.units + 1), 0}),
      best_(static_cast<std::size_t>(chain.units + 1)),
      stored_(most_stored(chain)) {
  const std::size_t last = chain.stages() - 1;
  for (std::size_t s = last + 1; s-- > 0;)
    for (std::size_t t = s; t <= last; ++t)
      if (t == last || checkpoints[t + 1]) fill(s, t);
}

std::int64_t RotorTable::recomputed(std::size_t s, std::size_t t, std::int64_t units) const {
  const Row& row = rows_[place(s, t)];
  if (units < row.first) return kNever;
  const auto behind = static_cast<std::size_t>(units - row.first);
  return behind < static_cast<std::size_t>(row.size) ? row.values[behind] : 0;
}

std::int64_t RotorTable::best() const {
  return recomputed(0, chain_.stages() - 1, chain_.units);
}

std::size_t RotorTable::bytes() const {
  return store_.bytes() + rows_.size() * sizeof(Row);
}

void RotorTable::fill(std::size_t s, std::size_t t) {
  const std::size_t last = chain_.stages() - 1;
  std::int64_t limit = limit_;
  if (t < last && holds_ == Holds::schedules)
    limit -= chain_.forward_time(s, t + 1) + recomputed(t + 1, last, chain_.units);
  if (limit < 0) return;
  low_ = chain_.units - stored_[s];
  std::fill(best_.begin(), best_.begin() + (chain_.units - low_ + 1), kNever);
  steps_ = chain_.units - low_ + 1;
  keep(s, t);
  checkpoint(s, t, limit);
  store(s, t, limit);
  chain_.work.add(steps_);
}

void RotorTable::keep(std::size_t s, std::size_t t) {
  std::int64_t from = std::max(low_, chain_.keep_need(s, t));
  if (s == t) {
    for (; from <= chain_.units; ++from) at(from) = 0;
    return;
  }
  const Row& inner = rows_[place(s + 1, t)];
  from = std::max(from, inner.first + chain_.saved[s]);
  for (; from <= chain_.units; ++from) {
    const auto behind = static_cast<std::size_t>(from - chain_.saved[s] - inner.first);
    at(from) = behind < static_cast<std::size_t>(inner.size) ? inner.values[behind] : 0;
  }
}

void RotorTable::checkpoint(std::size_t s, std::size_t t, std::int64_t limit) {
  // R falls with u, and a checkpoint at k adds at least the forwards s..k-1: from the first u at
  // which R is at most that, k and all behind it are of no use.
  std::int64_t end = chain_.units + 1, bare = 0;
  for (std::size_t k = s + 1; k <= t; ++k) {
    ++steps_;
    bare = std::max(bare, chain_.bare_need(s, k - 1));
    const std::int64_t add = chain_.forward_time(s, k);
    const std::int64_t need = std::max(low_, chain_.behind[t] + bare);
    while (end > low_ && at(end - 1) <= add) --end;
    if (need >= end || add > limit) return;
    if (!checkpoints_[k]) continue;
    const Row& left = rows_[place(s, k - 1)];
    const Row& right = rows_[place(k, t)];
    const std::int64_t shift = chain_.output[k - 1];
    const std::int64_t from = std::max({need, std::int64_t{left.first}, right.first + shift});
    if (from >= end) continue;
    steps_ += end - from;
    lower(left, right, shift, from, end, add);
  }
}

namespace {

// The inner loops; compilers make vector instructions of them.
void lower_to_sum(std::int64_t* __restrict best, const std::int64_t* __restrict a,
                  const std::int64_t* __restrict b, std::int64_t count, std::int64_t add) {
  for (std::int64_t i = 0; i < count; ++i) best[i] = std::min(best[i], a[i] + b[i] + add);
}

void lower_to_sum(std::int64_t* __restrict best, const std::int64_t* __restrict a,
                  std::int64_t count, std::int64_t add) {
  for (std::int64_t i = 0; i < count; ++i) best[i] = std::min(best[i], a[i] + add);
}

}  // namespace

void RotorTable::lower(const Row& left, const Row& right, std::int64_t shift, std::int64_t from,
                       std::int64_t end, std::int64_t add) {
  const std::int64_t left_end = std::min<std::int64_t>(end, left.first + left.size);
  const std::int64_t right_end = std::min<std::int64_t>(end, right.first + right.size + shift);
  const auto left_at = [&](std::int64_t units) { return left.values + (units - left.first); };
  const auto right_at = [&](std::int64_t units) {
    return right.values + (units - shift - right.first);
  };
  const std::int64_t both = std::min(left_end, right_end);
  if (from < both) {
    lower_to_sum(&at(from), left_at(from), right_at(from), both - from, add);
    from = both;
  }
  if (from < left_end) {
    lower_to_sum(&at(from), left_at(from), left_end - from, add);
    from = left_end;
  } else if (from < right_end) {
    lower_to_sum(&at(from), right_at(from), right_end - from, add);
    from = right_end;
  }
  for (; from < end; ++from) at(from) = add;
}

void RotorTable::store(std::size_t s, std::size_t t, std::int64_t limit) {
  std::int64_t first = low_;
  while (first <= chain_.units && at(first) > limit) ++first;
  if (first > chain_.units) return;
  Row& row = rows_[place(s, t)];
  row.first = static_cast<std::int32_t>(first);
  std::int64_t end = chain_.units + 1;
  while (end > first && at(end - 1) == 0) --end;
  row.size = static_cast<std::int32_t>(end - first);
  if (row.size == 0) return;
  values_ += row.size;
  if (values_ > most_values_) throw TableTooLarge{most_values_};
  std::int64_t* values = store_.make(static_cast<std::size_t>(row.size));
  std::copy(&at(first), &at(first) + row.size, values);
  row.values = values;
}

namespace {

/// Of the checkpoints of the tables, the sparsest twice: the second time it has a limit.
constexpr std::size_t kDistances[] = {64, 64, 16, 4};

/// A table within a limit has about as many values a checkpoint as the next one, which may have
/// more, but hardly fewer: where so many times the most are expected it is not begun.
constexpr std::int64_t kClearly = 2;

constexpr std::int64_t kNoLimit = kNever - 1;

/// What tables with few checkpoints tell of the next one.
struct Sparse {
  std::int64_t limit = kNoLimit;
  std::size_t bytes = 0;
};

Sparse narrow(const RotorChain& chain, std::int64_t most_values) {
  Sparse known;
  for (const std::size_t distance : kDistances) {
    if (chain.stages() < 8 * distance) continue;
    const std::vector<bool> checkpoints = sparse_checkpoints(chain, distance);
    const RotorTable table(chain, known.limit, checkpoints, most_values);
    const std::int64_t about = table.values() * static_cast<std::int64_t>(distance);
    if (known.limit < kNoLimit && about / kClearly > most_values)
      throw TableTooLarge{most_values, about};
    known.bytes = std::max(known.bytes, table.bytes());
    if (table.best() < kNever) known.limit = table.best();
  }
  return known;
}

}  // namespace

std::vector<bool> sparse_checkpoints(const RotorChain& chain, std::size_t distance) {
  std::vector<bool> checkpoints(chain.stages(), false);
  for (std::size_t begin = 1; begin < chain.stages(); begin += distance) {
    const auto from = chain.output.begin() + static_cast<std::ptrdiff_t>(begin - 1);
    const std::size_t length = std::min(distance, chain.stages() - begin);
    const auto least = std::min_element(from, from + static_cast<std::ptrdiff_t>(length));
    checkpoints[begin + static_cast<std::size_t>(least - from)] = true;
  }
  return checkpoints;
}

std::optional<std::int64_t> sparse_limit(const RotorChain& chain, std::int64_t most_values) {
  const Sparse known = narrow(chain, most_values);
  return known.limit < kNoLimit ? std::optional(known.limit) : std::nullopt;
}

std::optional<RotorSchedule> rotor_in_slots(const RotorChain& chain, std::int64_t most_values) {
  const Sparse known = narrow(chain, most_values);
  const std::vector<bool> everywhere(chain.stages(), true);
  const RotorTable table(chain, known.limit, everywhere, most_values);
  if (table.best() == kNever) return std::nullopt;
  const auto recomputed = [&](std::size_t s, std::size_t t, std::int64_t units) {
    return table.recomputed(s, t, units);
  };
  return RotorSchedule{persistent_sequence(chain, recomputed), table.best(), table.values(),
                       std::max(known.bytes, table.bytes())};
}

}  // namespace plimsoll
