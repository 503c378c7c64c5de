#include "policy/pipeline/partition/pipedream_partition.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Of Work, for a split that is looked at, and for a cell of a table.
constexpr std::size_t kStepsASplit = 8, kStepsACell = 2;

Time divided(Time time, std::int64_t by) {
  return Time{time.count() / by + (time.count() % by == 0 ? 0 : 1)};
}

/// bytes / (rate machines).
Time spread(Bytes bytes, ByteRate rate, std::int64_t machines) {
  return rate.is_unlimited() ? Time{} : transfer_time(bytes, rate * machines);
}

/// Sums over runs of states.
class Sums {
 public:
  Sums(const std::vector<PipedreamState>& states, auto part) : before_(1) {
    for (const PipedreamState& state : states) before_.push_back(before_.back() + part(state));
  }
  /// Over states [begin, end).
  [[nodiscard]] auto operator()(std::size_t begin, std::size_t end) const {
    return before_[end] - before_[begin];
  }

 private:
  std::vector<Bytes> before_;
};

struct Chain {
  explicit Chain(const std::vector<PipedreamState>& all)
      : states(all),
        parameters(all, [](const PipedreamState& s) { return s.parameters; }),
        kept(all, [](const PipedreamState& s) { return s.activations + s.parameters; }) {}
  const std::vector<PipedreamState>& states;
  Sums parameters, kept;
};

/// Times of runs of states [begin, end) on one machine of a level; unlimited where there is none.
using Compute = std::vector<std::vector<Time>>;

/// The table of one level.
class Level {
 public:
  Level(const Chain& chain, const PipedreamLevel& level, const PipedreamOptions& options,
        const Compute& compute, std::uint32_t inside)
      : chain_(chain),
        level_(level),
        options_(options),
        compute_(compute),
        inside_(inside),
        size_(chain.states.size()) {
    const std::size_t cells = size_ * (size_ + 1) * level.machines;
    options.work.add(kStepsACell * cells);
    cells_.resize(cells);
  }

  /// Fills t for every run that begins at `begin`.
  void fill(std::size_t begin) {
    const std::size_t machines_of_splits =
        options_.straight ? level_.machines : level_.machines * (level_.machines - 1) / 2 + 1;
    for (std::size_t end = begin + 1; end <= size_; ++end) {
      options_.work.add(kStepsASplit * (end - begin) * machines_of_splits);
      for (std::uint32_t machines = 1; machines <= level_.machines; ++machines) {
        Cell& cell = at(begin, end, machines);
        if (!options_.straight || machines == 1) cell.time = one_stage(begin, end, machines);
        for (std::size_t cut = end - 1; cut > begin; --cut)
          for (std::uint32_t tail = 1; tail < machines && (!options_.straight || tail == 1); ++tail)
            try_split(cell, begin, end, machines, cut, tail);
      }
    }
  }

  [[nodiscard]] Time time(std::size_t begin, std::size_t end) const {
    return at(begin, end, level_.machines).time;
  }

  /// The stages of [begin, end) on all machines of the level, appended.
  void collect(std::size_t begin, std::size_t end, std::vector<ReplicatedStage>& stages) const {
    const auto first = std::ssize(stages);
    std::uint32_t machines = level_.machines;
    for (const Cell* cell = &at(begin, end, machines); cell->tail > 0;
         cell = &at(begin, end, machines)) {
      stages.push_back({cell->cut, end, cell->tail});
      end = cell->cut;
      machines -= cell->tail;
    }
    stages.push_back({begin, end, machines});
    std::reverse(stages.begin() + first, stages.end());
  }

 private:
  struct Cell {
    Time time = Time::unlimited();
    std::uint32_t cut = 0;
    std::uint32_t tail = 0;  ///< machines of the last stage; 0 where there is only one stage
  };

  Cell& at(std::size_t begin, std::size_t end, std::uint32_t machines) {
    return cells_[(begin * (size_ + 1) + end) * level_.machines + machines - 1];
  }
  const Cell& at(std::size_t begin, std::size_t end, std::uint32_t machines) const {
    return cells_[(begin * (size_ + 1) + end) * level_.machines + machines - 1];
  }

  bool fits(std::size_t begin, std::size_t end, std::int64_t left, std::int64_t replicas) const {
    if (!options_.memory) return true;
    return chain_.kept(begin, end) * ((left + replicas - 1) / replicas) <= *options_.memory;
  }

  Time all_reduce(std::size_t begin, std::size_t end, std::int64_t replicas) const {
    return spread(chain_.parameters(begin, end) * (4 * (replicas - 1)), level_.bandwidth, replicas);
  }

  Time one_stage(std::size_t begin, std::size_t end, std::uint32_t machines) const {
    const Time compute = compute_[begin][end];
    if (compute.is_unlimited() || !fits(begin, end, level_.machines - machines, machines))
      return Time::unlimited();
    return divided(compute + divided(all_reduce(begin, end, machines), inside_), machines);
  }

  Time transfer(std::size_t end, std::uint32_t replicas) const {
    if (!options_.compression_ratio || end == size_) return Time{};
    return divided(spread(chain_.states[end - 1].output * 2, level_.bandwidth, replicas),
                   *options_.compression_ratio);
  }

  void try_split(Cell& cell, std::size_t begin, std::size_t end, std::uint32_t machines,
                 std::size_t cut, std::uint32_t tail) const {
    const Time head = at(begin, cut, machines - tail).time, compute = compute_[cut][end];
    if (head >= cell.time || compute.is_unlimited() ||
        !fits(cut, end, level_.machines - machines, tail))
      return;
    const Time stage = divided(compute + all_reduce(cut, end, tail), tail);
    const Time time = std::max({head, stage, transfer(cut, tail), transfer(end, tail)});
    if (time < cell.time) cell = {time, static_cast<std::uint32_t>(cut), tail};
  }

  const Chain& chain_;
  const PipedreamLevel level_;
  const PipedreamOptions& options_;
  const Compute& compute_;
  const std::uint32_t inside_;
  const std::size_t size_;
  std::vector<Cell> cells_;  ///< by begin, end, machines
};

Compute on_one_machine(const std::vector<PipedreamState>& states) {
  Compute compute(states.size(), std::vector<Time>(states.size() + 1));
  for (std::size_t i = 0; i < states.size(); ++i)
    for (std::size_t end = i + 1; end <= states.size(); ++end)
      compute[i][end] = compute[i][end - 1] + states[end - 1].compute;
  return compute;
}

}  // namespace

std::optional<PipedreamPartition> pipedream_partition(const std::vector<PipedreamState>& states,
                                                      const std::vector<PipedreamLevel>& levels,
                                                      const PipedreamOptions& options) {
  const Chain chain(states);
  options.work.add(kStepsACell * states.size() * states.size() * levels.size());
  std::vector<Compute> computes{on_one_machine(states)};
  std::vector<Level> tables;
  computes.reserve(levels.size());
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const std::uint32_t inside = l == 0 ? 1 : levels[l - 1].machines;
    Level& table = tables.emplace_back(chain, levels[l], options, computes[l], inside);
    const bool outermost = l + 1 == levels.size();
    for (std::size_t begin = 0; begin < (outermost ? 1 : states.size()); ++begin) table.fill(begin);
    if (outermost) break;
    Compute& next = computes.emplace_back(computes.front());
    for (std::size_t i = 0; i < states.size(); ++i)
      for (std::size_t end = i + 1; end <= states.size(); ++end) next[i][end] = table.time(i, end);
  }

  PipedreamPartition partition;
  partition.stage_time = tables.back().time(0, states.size());
  if (partition.stage_time.is_unlimited()) return std::nullopt;
  std::vector<ReplicatedStage> outside{{0, states.size(), 1}};
  for (std::size_t l = levels.size(); l-- > 0;) {
    auto& stages = partition.levels.emplace_back();
    for (const ReplicatedStage& stage : outside) tables[l].collect(stage.begin, stage.end, stages);
    outside = stages;
  }
  return partition;
}

}  // namespace plimsoll
