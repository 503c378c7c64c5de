#include "policy/remat/reversal/two_level_table.hpp"

#include "policy/remat/reversal/binomial.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

namespace {

using Kind = ChainAction::Kind;

/// More than any sum of times in range; two of it can be added.
constexpr std::int64_t kNoRelay = std::int64_t{1} << 61;

std::int64_t common_divisor(const TwoLevelProblem& it) {
  return std::max<std::int64_t>(
      1, std::gcd(it.forward.count(), std::gcd(it.write.count(), it.read.count())));
}

/// More slots than steps are never used.
std::int64_t storage_slots(const TwoLevelProblem& it) {
  return std::min(it.storage_slots, it.steps);
}

/// R(n) for n = 1 .. steps, without the backwards.
std::vector<std::int64_t> ram_only(const TwoLevelProblem& it, std::int64_t forward) {
  std::vector<std::int64_t> row(static_cast<std::size_t>(it.steps) + 1, kNoRelay);
  for (std::int64_t n = 1; n <= it.steps; ++n)
    if (n == 1 || it.ram_slots > 0)
      row[static_cast<std::size_t>(n)] =
          forward * (n + (n == 1 ? 0 : binomial_advances(n, it.ram_slots)));
  return row;
}

}  // namespace

std::int64_t TwoLevelTable::work(const TwoLevelProblem& it) {
  std::int64_t work = it.steps;
  if (__builtin_mul_overflow(work, it.steps, &work) ||
      __builtin_mul_overflow(work, storage_slots(it), &work))
    return kNoRelay;
  return work;
}

bool TwoLevelTable::in_range(const TwoLevelProblem& it) {
  // No schedule of the table takes longer than one forward sweep and one copy each way a step.
  const std::int64_t unit = common_divisor(it);
  std::int64_t sweeps = it.steps * (it.steps + 1) / 2, copies = 0;
  return !__builtin_mul_overflow(sweeps, it.forward.count() / unit, &sweeps) &&
         !__builtin_add_overflow(it.write.count() / unit, it.read.count() / unit, &copies) &&
         !__builtin_mul_overflow(copies, it.steps, &copies) &&
         !__builtin_add_overflow(sweeps, copies, &sweeps) && sweeps < kNoRelay / 2;
}

TwoLevelTable::TwoLevelTable(const TwoLevelProblem& problem)
    : it_(problem), unit_(common_divisor(problem)) {
  it_.storage_slots = storage_slots(it_);
  const Row ram = ram_only(it_, it_.forward.count() / unit_);
  choices_.resize(ram.size() * static_cast<std::size_t>(it_.storage_slots));
  Row working = ram;  // A(., m)
  for (std::int64_t m = 1; m <= it_.storage_slots; ++m) fill(ram, m, working);
}

void TwoLevelTable::fill(const Row& ram, std::int64_t slots, Row& working) {
  const std::int64_t forward = it_.forward.count() / unit_, write = it_.write.count() / unit_,
                     read = it_.read.count() / unit_;
  Choice* const choices = &choices_[static_cast<std::size_t>(slots - 1) * ram.size()];
  Row ahead(ram.size());  // j u_f + r + B(j, m), known for j below the present n
  Row next(ram.size(), kNoRelay);
  const Row& fewer = working;
  for (std::size_t n = 1; n < ram.size(); ++n) {
    std::int64_t best = ram[n];
    for (std::size_t j = 1; j < n; ++j) best = std::min(best, ahead[j] + fewer[n - j]);
    if (best < ram[n])
      for (std::size_t j = 1; choices[n].advance == 0; ++j)
        if (ahead[j] + fewer[n - j] == best) choices[n].advance = static_cast<std::uint32_t>(j);
    ahead[n] = std::min(kNoRelay, static_cast<std::int64_t>(n) * forward + read + best);
    choices[n].stores = write + best < ram[n];
    next[n] = std::min(ram[n], write + best);
  }
  working = std::move(next);
}

const TwoLevelTable::Choice& TwoLevelTable::choice(std::int64_t steps, std::int64_t slots) const {
  static constexpr Choice kRamOnly{};
  if (slots == 0) return kRamOnly;
  return choices_[static_cast<std::size_t>((slots - 1) * (it_.steps + 1) + steps)];
}

std::optional<ChainSequence> TwoLevelTable::sequence() const {
  /// What is left to do, the last first.
  struct Task {
    enum class What : std::uint8_t { working, stored, read } what;
    std::int64_t begin, steps, slots;
  };
  using What = Task::What;
  std::vector<Task> tasks{{What::working, 0, it_.steps, it_.storage_slots}};
  ChainSequence sequence;
  const auto add = [&](Kind kind, std::int64_t stage) {
    sequence.push_back({kind, static_cast<std::uint32_t>(stage)});
  };
  const auto ram_actions = [&](std::int64_t steps) {
    return 2 * steps + (steps > 1 ? binomial_advances(steps, it_.ram_slots) : 0);
  };
  while (!tasks.empty() && sequence.size() <= kMostActions) {
    const auto [what, begin, steps, slots] = tasks.back();
    tasks.pop_back();
    const Choice chosen = choice(steps, slots);
    if (what == What::read) {
      add(Kind::read, begin);
    } else if (what == What::working && chosen.stores) {
      add(Kind::write, begin);
      tasks.push_back({What::stored, begin, steps, slots});
    } else if (what == What::stored && chosen.advance > 0) {
      for (std::int64_t s = begin; s < begin + chosen.advance; ++s) add(Kind::bare, s);
      tasks.push_back({What::stored, begin, chosen.advance, slots});
      tasks.push_back({What::read, begin, 0, 0});
      tasks.push_back({What::working, begin + chosen.advance, steps - chosen.advance, slots - 1});
    } else if (ram_actions(steps) > static_cast<std::int64_t>(kMostActions)) {
      return std::nullopt;
    } else {
      append_binomial(sequence, static_cast<std::uint32_t>(begin),
                      static_cast<std::uint32_t>(begin + steps),
                      std::max<std::int64_t>(1, it_.ram_slots));
    }
  }
  if (sequence.size() > kMostActions) return std::nullopt;
  return sequence;
}

}  // namespace plimsoll
