#include "report/html/html_stages.hpp"

#include "execution/recording.hpp"
#include "platform/core/home_memory.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostOperators = 2000;

/// A square of stages (rows) and operators, both in the order of first runs.
using Square = std::vector<std::vector<double>>;

class StageMaps {
 public:
  StageMaps(const Scenario& scenario, const RunResult& run)
      : platform_(scenario.platform),
        run_(run),
        workload_(run.workload_as_run),
        topology_(scenario.platform),
        program_(lower(run.plan, workload_, platform_, topology_)),
        recording_(record(program_)),
        place_(workload_.operators.size(), kNowhere),
        whole_(workload_.operators.size(), 0) {
    order_operators();
    find_makers();
  }

  std::vector<HtmlHeatmap> maps() {
    add_runs();
    for (const Stay& stay : recording_.stays) add_stay(stay);
    const std::string of = label_of(run_);
    return {map_of(fmt::format("In RAM: {}", of), in_ram_, true),
            map_of(fmt::format("On storage: {}", of), on_storage_, true),
            map_of(fmt::format("Computed: {}", of), runs_, false)};
  }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  [[nodiscard]] bool is_run(const StepTimes& it) const {
    return run_.plan[it.step].kind == StepKind::compute;
  }

  void order_operators() {
    for (const StepTimes& it : recording_.steps) {
      if (!is_run(it)) continue;
      const auto op = static_cast<std::size_t>(run_.plan[it.step].op);
      if (place_[op] != kNowhere) continue;
      place_[op] = order_.size();
      order_.push_back(op);
      begins_.push_back(it.start);
    }
    in_ram_ = on_storage_ = runs_ = Square(order_.size(), std::vector<double>(order_.size(), 0));
  }

  void find_makers() {
    maker_.assign(workload_.tensors.size(), kNowhere);
    for (std::size_t o = 0; o < workload_.operators.size(); ++o) {
      const Operator& op = workload_.operators[o];
      for (const TensorId tensor : workload_.list(op.bare)) maker_[index_of(tensor)] = o;
      for (const TensorId tensor : workload_.list(op.kept)) {
        maker_[index_of(tensor)] = o;
        whole_[o] += static_cast<double>(workload_[tensor].bytes.count());
      }
    }
  }

  static std::size_t index_of(TensorId id) { return static_cast<std::size_t>(id); }

  /// The stage whose first run is the next at or after `time`.
  [[nodiscard]] std::size_t stage_at(Time time) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(begins_, time) - begins_.begin());
  }

  void add_runs() {
    for (const StepTimes& it : recording_.steps)
      if (is_run(it)) {
        const std::size_t stage = std::min(stage_at(it.start), order_.size() - 1);
        runs_[stage][place_[static_cast<std::size_t>(run_.plan[it.step].op)]] += 1;
      }
  }

  void add_stay(const Stay& stay) {
    if (stay.tensor == kNoTensor || maker_[index_of(stay.tensor)] == kNowhere) return;
    const std::size_t op = maker_[index_of(stay.tensor)], column = place_[op];
    if (column == kNowhere || whole_[op] <= 0) return;
    Square& square = is_home(platform_, stay.memory) ? in_ram_ : on_storage_;
    const double share = static_cast<double>(stay.bytes.count()) / whole_[op];
    for (std::size_t t = stage_at(stay.begin); t < order_.size() && begins_[t] < stay.end; ++t)
      if (t != column) square[t][column] = std::min(square[t][column] + share, 1.0);
  }

  [[nodiscard]] std::size_t sides() const { return std::min(order_.size(), kMostSide); }
  [[nodiscard]] std::size_t first_of(std::size_t group) const {
    return group * order_.size() / sides();
  }

  [[nodiscard]] HtmlHeatmap map_of(const std::string& heading, const Square& square,
                                   bool is_share) const {
    HtmlHeatmap map;
    map.heading = heading;
    map.what = is_share ? "share of its bytes" : "runs";
    map.unit = is_share ? "share" : "runs";
    map.unranked = true;
    map.x.label = "operator";
    map.y.label = "stage";
    if (is_share) map.range = HtmlHeatmap::Range{0, 1};
    for (std::size_t g = 0; g < sides(); ++g) {
      map.x.values.push_back(std::to_string(first_of(g)));
      map.y.values.push_back(
          fmt::format("{} {}", first_of(g), workload_.operators[order_[first_of(g)]].name));
      add_row(square, g, is_share, map);
    }
    if (sides() < order_.size())
      map.note = fmt::format("{} operators; a cell stands for about {} of them and of the stages.",
                             order_.size(), (order_.size() + sides() - 1) / sides());
    return map;
  }

  void add_row(const Square& square, std::size_t row, bool is_share, HtmlHeatmap& map) const {
    std::vector<std::optional<double>> cells;
    std::vector<std::string> texts;
    for (std::size_t column = 0; column < sides(); ++column) {
      const bool is_before = column > row;
      const double value = is_before ? 0 : value_of(square, row, column, is_share);
      cells.push_back(is_before ? std::nullopt : std::optional(value));
      texts.push_back(is_before ? " " : text_of(value, is_share));
    }
    map.cells.push_back(std::move(cells));
    map.texts.push_back(std::move(texts));
  }

  /// Of the group's cells the mean share, or all runs.
  [[nodiscard]] double value_of(const Square& square, std::size_t row, std::size_t column,
                                bool is_share) const {
    double sum = 0, cells = 0;
    for (std::size_t t = first_of(row); t < first_of(row + 1); ++t)
      for (std::size_t i = first_of(column); i < first_of(column + 1); ++i, ++cells)
        sum += square[t][i];
    return is_share ? sum / cells : sum;
  }

  static std::string text_of(double value, bool is_share) {
    if (value == 0) return "\u00b7";
    if (!is_share) return fmt::format("{:.0f}", value);
    return value >= 1 ? "\u25a0" : fmt::format("{:.0f}", std::ceil(value * 100));
  }

  const Platform& platform_;
  const RunResult& run_;
  const Workload& workload_;
  const Topology topology_;
  const Program program_;
  const Recording recording_;
  std::vector<std::size_t> order_;  ///< operators by their first runs
  std::vector<Time> begins_;        ///< of first runs
  std::vector<std::size_t> place_;  ///< in `order_`, by operator
  std::vector<double> whole_;       ///< bytes of an operator's outputs
  std::vector<std::size_t> maker_;  ///< by tensor
  Square in_ram_, on_storage_, runs_;
};

}  // namespace

std::vector<HtmlHeatmap> stage_maps(const Scenario& scenario, const RunResult& run) {
  const auto streams = std::ranges::count(run.plan.lanes, Lane::Kind::stream, &Lane::kind);
  if (!run.policy.starts_with("hybrid/") || run.infeasible || run.metrics.status != RunStatus::ok ||
      streams != 1 || run.plan.microbatches != 1 ||
      run.workload_as_run.operators.size() > kMostOperators)
    return {};
  return StageMaps(scenario, run).maps();
}

}  // namespace plimsoll
