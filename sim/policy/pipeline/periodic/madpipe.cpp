#include "policy/pipeline/periodic/madpipe.hpp"

#include <algorithm>
#include <tuple>

namespace plimsoll {

namespace {

constexpr std::int64_t kCells = 16;

/// Of Work, for a slot of some length before the slots of a state.
constexpr std::size_t kStepsASlot = 64;

/// Of [0, most], in kCells.
std::int64_t cell(std::int64_t value, std::int64_t most) {
  return std::min(kCells - 1, value / std::max<std::int64_t>(1, most / kCells));
}

}  // namespace

/// States by the stage at which they begin, at most one a cell.
class MadPipe::Table {
 public:
  Table(const MadPipe& it, Time period, bool overlap)
      : it_(it), period_(period), overlap_(overlap), by_begin_(it.kinds_.stages() + 1) {
    State none;
    none.begin = it.kinds_.stages();
    none.normal_left = it.devices_ - 1;
    put(none);
    for (std::size_t end = none.begin; end > 0; --end)
      for (const auto& [key, index] : by_begin_[end]) {
        const std::size_t lengths = extend(index);
        it_.kinds_.work().add(kStepsASlot * lengths);
      }
  }

  [[nodiscard]] const std::vector<State>& states() const { return states_; }

  /// Of everything, the one with the fewest slots.
  [[nodiscard]] std::optional<std::size_t> whole() const {
    std::optional<std::size_t> best;
    for (const auto& [key, index] : by_begin_.front())
      if (!best || states_[index].slots < states_[*best].slots) best = index;
    return best;
  }

 private:
  /// Normal devices left, the special one first, cells of its load and memory.
  using Key = std::tuple<std::size_t, bool, std::int64_t, std::int64_t>;

  void put(const State& state) {
    const Bytes memory = state.memory + state.passing;
    const Key key{state.normal_left, state.special_first, cell(state.load.count(), period_.count()),
                  cell(memory.count(), it_.limit_.count())};
    const auto [known, fresh] = by_begin_[state.begin].emplace(key, states_.size());
    if (!fresh && states_[known->second].behind <= state.behind) return;
    known->second = states_.size();
    states_.push_back(state);
  }

  /// By one slot before it, of every length; of so many.
  std::size_t extend(std::size_t index) {
    const State from = states_[index];
    if (from.slots == it_.most_slots_) return 1;
    NextFit::Run run{0, from.begin, from.begin, Bytes{}};
    while (run.begin > 0) {
      --run.begin;
      run.passing = std::max(run.passing, it_.kinds_.passing(run.begin));
      run.slot = run.begin == 0 ? 0 : from.slots == 0 ? 2 : 1;
      const Time forward = it_.kinds_.forward(run.slot, run.begin, run.end);
      const Time backward = it_.kinds_.backward(run.slot, run.begin, run.end);
      if (forward + backward > period_) break;
      if (forward == Time{} || backward == Time{}) continue;
      const auto lives = it_.rule_.lifetimes(run, from.behind, period_);
      if (!lives) continue;
      State to = from;
      to.begin = run.begin;
      to.slots = from.slots + 1;
      to.behind = lives->with_cut;
      to.after = index;
      const bool several = overlap_ && from.load > Time{} && lives->slot > period_;
      add_slot(to, run, it_.rule_.memory(run, *lives, period_), forward + backward,
               several ? kept(run) : Bytes{});
    }
    return from.begin - run.begin;
  }

  /// For one microbatch in flight.
  Bytes kept(const NextFit::Run& run) const {
    const auto memory = [&](std::int64_t in_flight) {
      return it_.kinds_.memory(run.slot, run.begin, run.end,
                               {.in_flight = in_flight, .saved = in_flight}, Bytes{});
    };
    return memory(1) - memory(0);
  }

  /// On the special device it needs `saved` less.
  void add_slot(State to, const NextFit::Run& run, Bytes memory, Time load, Bytes saved) {
    if (!to.special_first) {
      State shared = to;
      shared.special_first = true;
      shared.load += load;
      shared.memory += memory - it_.rule_.passing(run) - saved;
      shared.passing = std::max(shared.passing, it_.rule_.passing(run));
      if (shared.load <= period_ && shared.memory + shared.passing <= it_.limit_) put(shared);
    }
    if (to.normal_left == 0 || memory > it_.limit_) return;
    --to.normal_left;
    to.special_first = false;
    put(to);
  }

  const MadPipe& it_;
  const Time period_;
  const bool overlap_;
  std::vector<State> states_;
  std::vector<std::map<Key, std::size_t>> by_begin_;
};

MadPipe::MadPipe(const PeriodicCosts& kinds, std::size_t devices, Bytes limit,
                 std::size_t most_slots)
    : kinds_(kinds),
      devices_(devices),
      limit_(limit),
      most_slots_(most_slots),
      limits_(kinds.slots(), limit),
      rule_(kinds, limits_, {}) {}

std::optional<SharedAllocation> MadPipe::allocation_for(Time period, bool overlap) const {
  const Table table(*this, period, overlap);
  const auto whole = table.whole();
  if (!whole) return std::nullopt;
  return allocation(table.states(), *whole);
}

SharedAllocation MadPipe::allocation(const std::vector<State>& states, std::size_t whole) const {
  SharedAllocation made{{0}, {}};
  std::optional<std::uint32_t> special;
  std::uint32_t devices = 0;
  for (std::size_t at = whole; states[at].slots > 0; at = states[at].after) {
    made.cuts.push_back(states[states[at].after].begin);
    if (states[at].special_first) {
      if (!special) special = devices++;
      made.placement.push_back(*special);
    } else {
      made.placement.push_back(devices++);
    }
  }
  return made;
}

}  // namespace plimsoll
