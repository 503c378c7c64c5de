// The lower bound of offload against the linear program that it is the optimum of, written down
// as such and solved by the simplex method.
#include "policy/offload/model/fluid_bound.hpp"

#include "property/random_offload.hpp"

#include <cmath>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::OffloadInstance;

using Row = std::vector<double>;

/// Maximises cost . x over x >= 0 with every row . x <= its last entry (Bland's rule; a first phase
/// on one extra variable where an entry is negative). Nothing where no x is feasible.
class Simplex {
 public:
  Simplex(std::vector<Row> rows, Row cost) : variables_(cost.size()) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      Row row(variables_ + 1, 0.0);
      std::copy(rows[r].begin(), rows[r].end() - 1, row.begin());
      row.push_back(rows[r].back());
      row[variables_] = -1;  // the extra variable of the first phase
      table_.push_back(row);
      basic_.push_back(variables_ + 1 + r);
    }
    for (std::size_t v = 0; v <= variables_; ++v) free_.push_back(v);
    cost_ = cost;
  }

  std::optional<double> run() {
    Row first(variables_ + 2, 0.0);
    first[variables_] = -1;
    std::size_t worst = 0;
    for (std::size_t r = 1; r < table_.size(); ++r)
      if (table_[r].back() < table_[worst].back()) worst = r;
    objective_ = first;
    if (table_[worst].back() < -kSmall) {
      pivot(worst, variables_);
      improve();
      if (objective_.back() > kSmall || objective_.back() < -kSmall) return std::nullopt;
    }
    rebuild_objective();
    improve();
    return -objective_.back();
  }

 private:
  static constexpr double kSmall = 1e-9;

  void pivot(std::size_t r, std::size_t c) {
    Row& row = table_[r];
    const double by = 1 / row[c];
    for (std::size_t v = 0; v < row.size(); ++v) row[v] *= v == c ? 1 : by;
    row[c] = by;
    const auto eliminate = [&](Row& other) {
      const double factor = other[c];
      if (factor == 0) return;
      for (std::size_t v = 0; v < row.size(); ++v)
        if (v != c) other[v] -= factor * row[v];
      other[c] = -factor * by;
    };
    for (std::size_t other = 0; other < table_.size(); ++other)
      if (other != r) eliminate(table_[other]);
    eliminate(objective_);
    std::swap(basic_[r], free_[c]);
  }

  void improve() {
    while (true) {
      std::optional<std::size_t> enter, leave;
      for (std::size_t c = 0; c < free_.size(); ++c)
        if (objective_[c] > kSmall && !is_closed(free_[c]) && (!enter || free_[c] < free_[*enter]))
          enter = c;
      if (!enter) return;
      for (std::size_t r = 0; r < table_.size(); ++r) {
        if (table_[r][*enter] <= kSmall) continue;
        const auto ratio = [&](std::size_t i) { return table_[i].back() / table_[i][*enter]; };
        if (!leave || ratio(r) < ratio(*leave) - kSmall ||
            (ratio(r) <= ratio(*leave) + kSmall && basic_[r] < basic_[*leave]))
          leave = r;
      }
      REQUIRE(leave);  // the program is bounded
      pivot(*leave, *enter);
    }
  }

  [[nodiscard]] bool is_closed(std::size_t variable) const {
    return second_phase_ && variable == variables_;
  }

  void rebuild_objective() {
    second_phase_ = true;
    for (std::size_t r = 0; r < table_.size(); ++r)
      if (basic_[r] == variables_)
        for (std::size_t c = 0; c < free_.size(); ++c)
          if (std::abs(table_[r][c]) > 1e-6) {
            pivot(r, c);
            break;
          }
    objective_.assign(variables_ + 2, 0.0);
    for (std::size_t c = 0; c < free_.size(); ++c)
      if (free_[c] < variables_) objective_[c] = cost_[free_[c]];
    for (std::size_t r = 0; r < table_.size(); ++r) {
      if (basic_[r] >= variables_) continue;
      const double factor = cost_[basic_[r]];
      for (std::size_t v = 0; v < objective_.size(); ++v) objective_[v] -= factor * table_[r][v];
    }
  }

  std::size_t variables_;
  std::vector<Row> table_;
  std::vector<std::size_t> basic_, free_;
  Row objective_, cost_;
  bool second_phase_ = false;
};

/// Stages and tensors count from 1, operations k from 1 to 2L: forward k, then backward 2L-k+1.
/// Windows: 2k-2 is the idle time before operation k, 2k-1 the operation.
class IdleProgram {
 public:
  explicit IdleProgram(const OffloadInstance& it)
      : chain_(it.chain),
        gpu_(it.gpu),
        stages_(static_cast<int>(it.chain.stages())),
        tensors_(std::max(0, stages_ - 2)) {}

  /// Idle time in seconds.
  std::optional<double> least_idle() {
    for (int k = 1; k <= 2 * stages_; ++k) {
      limit_channels(k);
      limit_memory(k, false);
      limit_memory(k, true);
    }
    for (int j = 1; j <= tensors_; ++j) limit_tensor(j);
    Row cost(variables(), 0.0);
    for (int k = 1; k <= 2 * stages_; ++k) cost[idle(k)] = -1;
    const auto best = Simplex(rows_, cost).run();
    if (!best) return std::nullopt;
    return -*best;
  }

 private:
  [[nodiscard]] int windows() const { return 4 * stages_; }
  [[nodiscard]] std::size_t variables() const {
    return static_cast<std::size_t>(2 * stages_ + 2 * tensors_ * windows());
  }
  [[nodiscard]] std::size_t idle(int k) const { return static_cast<std::size_t>(k - 1); }
  [[nodiscard]] std::size_t moved(bool in, int j, int window) const {
    return static_cast<std::size_t>(2 * stages_ + ((in ? tensors_ : 0) + j - 1) * windows() +
                                    window);
  }
  Row& add(double limit) {
    rows_.emplace_back(variables() + 1, 0.0);
    rows_.back().back() = limit;
    return rows_.back();
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  [[nodiscard]] double duration(int k) const {
    return static_cast<double>(k <= stages_ ? chain_.forward[at(k - 1)]
                                            : chain_.backward[at(2 * stages_ - k)]);
  }

  /// out of j only after forward j; in of j only before backward j+1 starts.
  [[nodiscard]] bool is_open(bool in, int j, int window) const {
    const int k = window / 2 + 1;
    const bool operates = window % 2 == 1;
    if (!in) return k > j;
    return operates ? k < 2 * stages_ - j : k <= 2 * stages_ - j;
  }

  void limit_channels(int k) {
    for (const bool in : {false, true}) {
      const auto rate = static_cast<double>(in ? gpu_.bandwidth_in : gpu_.bandwidth_out);
      Row& during_idle = add(0);
      during_idle[idle(k)] = -rate;
      for (int j = 1; j <= tensors_; ++j) during_idle[moved(in, j, 2 * k - 2)] = 1;
      Row& during_operation = add(rate * duration(k));
      for (int j = 1; j <= tensors_; ++j) during_operation[moved(in, j, 2 * k - 1)] = 1;
    }
  }

  /// R_k - (out so far - in so far) <= M, at the start or the end of operation k.
  void limit_memory(int k, bool at_end) {
    const bool is_forward = k <= stages_;
    const int i = is_forward ? k : 2 * stages_ - k + 1;
    std::int64_t need = chain_.output[0];
    for (int q = 1; q <= i; ++q) need += chain_.saved[at(q - 1)];
    if (!is_forward) need += chain_.output[at(i)] + chain_.output[at(i - 1)];
    Row& row = add(static_cast<double>(*gpu_.capacity - need));
    for (int j = 1; j <= tensors_ && (!is_forward || j <= k - 2); ++j) {
      for (int window = 0; window <= 2 * k - (at_end ? 1 : 2); ++window) {
        row[moved(false, j, window)] = -1;
        row[moved(true, j, window)] = 1;
      }
    }
  }

  void limit_tensor(int j) {
    for (const bool in : {false, true})
      for (int window = 0; window < windows(); ++window)
        if (!is_open(in, j, window)) add(0)[moved(in, j, window)] = 1;
    for (int last = 0; last < windows(); ++last) {
      Row& row = add(0);
      for (int window = 0; window <= last; ++window) {
        row[moved(true, j, window)] = 1;
        row[moved(false, j, window)] = -1;
      }
    }
    Row& all = add(static_cast<double>(chain_.saved[at(j - 1)]));
    for (int window = 0; window < windows(); ++window) all[moved(false, j, window)] = 1;
    Row& back = add(0);
    for (int window = 0; window < windows(); ++window) {
      back[moved(false, j, window)] = 1;
      back[moved(true, j, window)] = -1;
    }
  }

  const test::Chain& chain_;
  const test::OneGpu& gpu_;
  const int stages_, tensors_;
  std::vector<Row> rows_;
};

}  // namespace

TEST_CASE("the bound is the optimum of the divisible linear program, rounded up to 1 ps") {
  Dice dice(47);
  int idle = 0;
  for (int round = 0; round < 120; ++round) {
    OffloadInstance it = test::random_offload_instance(dice, dice(3, 5));
    it.gpu.bandwidth_out = dice(1, 3);
    it.gpu.bandwidth_in = dice(1, 3);
    *it.gpu.capacity -= dice(0, 6) == 0 ? 2 : 0;
    CAPTURE(test::chain_yaml(it.chain), *it.gpu.capacity, it.gpu.bandwidth_out,
            it.gpu.bandwidth_in);
    const OffloadModel model = test::model_of(it);
    const auto bound = fluid_bound(model);
    const auto program = IdleProgram(it).least_idle();
    REQUIRE(bound.has_value() == program.has_value());
    if (!bound) continue;
    const double of_bound = in_seconds(*bound - model.compute_time());
    REQUIRE(of_bound == Approx(*program).margin(1e-6));
    idle += of_bound > 0.01;
  }
  CHECK(idle > 30);
}

}  // namespace plimsoll
