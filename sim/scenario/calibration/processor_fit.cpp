#include "scenario/calibration/processor_fit.hpp"

#include "scenario/calibration/bounded_least_squares.hpp"
#include "scenario/calibration/measured_times.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::int64_t kEfficiencySteps = 10'000;
constexpr std::int64_t kThousandths = 1'000;
/// Of a launch overhead in the last term, where the platform has a smaller one or none.
constexpr Time kLeastOverhead{1'000'000};

/// Rounds of least squares; a handful is enough.
constexpr int kRounds = 20;
/// Of ours to the measured, in those rounds.
constexpr double kLeastRatio = 1e-3;
/// Below it log(1 + error) is the error.
constexpr double kNoError = 1e-6;

/// Of a wait, in the last term.
constexpr Time kLeastWait{100'000'000};

/// Unknowns: the overhead, the waits, and by kind of operator what an operator's arithmetic and
/// traffic are multiplied by.
constexpr std::size_t kOverhead = 0;
constexpr std::size_t kFirstWait = 1;
constexpr std::size_t kFirstCompute = kFirstWait + 2;
constexpr std::size_t kFirstBandwidth = kFirstCompute + kKernelKinds;
constexpr std::size_t kUnknowns = kFirstBandwidth + kKernelKinds;

/// The equations of the fit. `waits`: by measurement, what is no part of the sums.
class Fit {
 public:
  struct Solution {
    Coefficients coefficients;
    double squares = 0;  ///< of log(ours / t), by measurement the mean
  };

  Fit(const MeasurementSet& set, const std::vector<Time>& waits, Ratio slowdown)
      : set_(set), bandwidth_(bandwidth_of(set)), slowdown_(as_fraction(slowdown)) {
    now_.assign(kUnknowns, 0);
    now_[kOverhead] = in_picoseconds(set.start.launch_overhead);
    problem_.at_least.assign(kUnknowns, 1);
    for (const std::size_t j : {kFirstWait, kFirstWait + 1}) problem_.at_least[j] = 0;
    problem_.at_least[kOverhead] = in_picoseconds(set.platform[set.processor].launch_overhead);
    for (const KernelKind kind :
         {kind_of(OperatorClass::convolution), KernelKind::convolution_backward})
      problem_.at_least[kFirstCompute + static_cast<std::size_t>(kind)] =
          1 / as_fraction(kMostCompute);
    for (std::size_t i = 0; i < kKernelKinds; ++i) {
      now_[kFirstCompute + i] = 1 / as_fraction(set.start.efficiency[i].compute());
      now_[kFirstBandwidth + i] = 1 / as_fraction(set.start.efficiency[i].bandwidth());
    }
    for (std::size_t i = 0; i < waits.size(); ++i)
      if (const Measurement& it = set.measurements[i]; !it.is_test && !it.spec->host_bound)
        add(it, waits[i]);
    hold_untold();
    for (std::size_t j = 0; j < kUnknowns; ++j) pull(j);
  }

  /// Whether there is a share of which both devices tell.
  [[nodiscard]] bool compares_devices() const {
    for (std::size_t j = 0; j < kUnknowns; ++j)
      if (is_told_by_[0][j] && is_told_by_[1][j]) return true;
    return false;
  }

  [[nodiscard]] Solution run() const {
    const std::vector<double> x = balanced_solution();
    Solution solution{{}, squares_of(x)};
    Coefficients& fitted = solution.coefficients;
    fitted.launch_overhead = in_nanoseconds(x[kOverhead]);
    if (is_fitted_[kFirstWait] || is_fitted_[kFirstWait + 1])
      fitted.waits = {in_nanoseconds(x[kFirstWait]), in_nanoseconds(x[kFirstWait + 1])};
    for (std::size_t i = 0; i < kKernelKinds; ++i) {
      if (is_fitted_[kFirstCompute + i]) fitted.efficiency[i].compute = share(x[kFirstCompute + i]);
      if (is_fitted_[kFirstBandwidth + i])
        fitted.efficiency[i].bandwidth = share(x[kFirstBandwidth + i]);
    }
    return solution;
  }

 private:
  static ByteRate bandwidth_of(const MeasurementSet& set) {
    const Memory& memory = set.platform[set.platform[set.processor].memory];
    return std::min(memory.read.bandwidth, memory.write.bandwidth);
  }

  static Time in_nanoseconds(double picoseconds) {
    return Time{std::llround(picoseconds / kPicosecondsPerNanosecond) * kPicosecondsPerNanosecond};
  }

  static Ratio share(double inverse) {
    const auto steps = std::llround(kEfficiencySteps / inverse);
    return Ratio{std::max<std::int64_t>(steps, 1) * (kWhole.count() / kEfficiencySteps)};
  }

  /// Least squares of log(ours / t), each round by the linear errors ours / t - 1 with the weights
  /// that the ratios of the round before give them.
  [[nodiscard]] std::vector<double> balanced_solution() const {
    std::vector<double> x = solve(problem_);
    for (int round = 0; round < kRounds; ++round) {
      LeastSquares balanced = problem_;
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        LeastSquares::Row& row = balanced.rows[i];
        const double scale = scale_of(ratio_of(i, x));
        for (double& of : row.of) of *= scale;
        row.equals *= scale;
      }
      x = solve(balanced);
    }
    return x;
  }

  /// Of ours to the measured.
  [[nodiscard]] double ratio_of(std::size_t part, const std::vector<double>& x) const {
    const LeastSquares::Row& row = problem_.rows[part];
    return std::max(1 + (product(row.of, x) - row.equals) / weights_[part], kLeastRatio);
  }

  [[nodiscard]] double squares_of(const std::vector<double>& x) const {
    double sum = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      sum += std::pow(weights_[i] * std::log(ratio_of(i, x)), 2);
    return sum;
  }

  /// So that the linear error pulls as its logarithm does: scale^2 (r - 1) = log(r) / r.
  static double scale_of(double ratio) {
    const double error = ratio - 1;
    if (std::abs(error) < kNoError) return 1;
    return std::sqrt(std::log(ratio) / (error * ratio));
  }

  static double product(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

  void add(const Measurement& it, Time wait) {
    const double weight = 1 / std::sqrt(static_cast<double>(it.parts.size()));
    const auto all_parts = static_cast<double>(parts_of(it));
    for (const MeasuredPart& part : it.parts) {
      const double rest = 1 - in_picoseconds(wait) / in_picoseconds(part.time);
      LeastSquares::Row row{std::vector<double>(kUnknowns), weight * rest};
      for (std::size_t s = 0; s < it.shapes.size(); ++s) {
        const double share = static_cast<double>(it.shapes[s].parts) / all_parts;
        const double each =
            share * weight / in_picoseconds(part.time) * (it.spec->other_device ? slowdown_ : 1);
        add(row, each, it.shapes[s].workload, part, s);
      }
      if (part.waits) {
        row.of[kFirstWait + static_cast<std::size_t>(*part.waits)] +=
            weight / in_picoseconds(part.time) * static_cast<double>(part.waiting);
        row.of[kOverhead] = 0;  // a launch is in the wait
      }
      note_told(row, it.spec->other_device);
      problem_.rows.push_back(std::move(row));
      weights_.push_back(weight);
    }
  }

  /// Of a shape's operators, each counted `each` times.
  void add(LeastSquares::Row& row, double each, const Workload& workload, const MeasuredPart& part,
           std::size_t shape) const {
    for (const OperatorId op : part.operators[shape]) {
      if (is_second_half(workload, op)) continue;
      const OperatorWork work = work_of(workload, op, set_.start.kernels);
      add(row, each, work);
      if (part.has_own_additions()) add(row, each, work.additions);
    }
    if (part.added_before.empty()) return;
    for (const OperatorId op : part.added_before[shape])
      add(row, each, work_of(workload, op, set_.start.kernels).additions);
  }

  /// An operator's kernels without those that add gradients.
  void add(LeastSquares::Row& row, double each, const OperatorWork& work) const {
    const Processor& processor = set_.platform[set_.processor];
    const auto kind = static_cast<std::size_t>(work.kind);
    const auto& peak = processor.compute[static_cast<std::size_t>(work.arithmetic)];
    row.of[kOverhead] += each * work.launches;
    if (peak)
      row.of[kFirstCompute + kind] += each * in_picoseconds(compute_time(work.flops, *peak));
    row.of[kFirstBandwidth + kind] +=
        each * in_picoseconds(transfer_time(work.traffic, bandwidth_));
    add(row, each, work.bias);
  }

  void add(LeastSquares::Row& row, double each, const KernelsBeside& kernels) const {
    row.of[kOverhead] += each * kernels.launches;
    row.of[kFirstBandwidth + static_cast<std::size_t>(kernels.kind)] +=
        each * in_picoseconds(transfer_time(kernels.traffic, bandwidth_));
  }

  /// Which shares take a part of this time that can be told from its error.
  void note_told(const LeastSquares::Row& row, bool of_other_device) {
    double all = 0;
    for (std::size_t j = 0; j < kUnknowns; ++j) all += row.of[j] * now_[j];
    for (std::size_t j = 0; j < kUnknowns; ++j) {
      if (row.of[j] <= 0 || (j >= kFirstCompute && row.of[j] * now_[j] < kLeastShare * all))
        continue;
      is_fitted_[j] = true;
      if (j >= kFirstCompute) is_told_by_[of_other_device ? 1 : 0][j] = true;
    }
  }

  /// Takes to the right side what an unknown is that is not fitted. Of a class of which neither
  /// share is, the shorter of arithmetic and traffic hides behind the longer, as nearly as sums of
  /// operators tell.
  void hold_untold() {
    for (LeastSquares::Row& row : problem_.rows) {
      for (std::size_t i = 0; i < kKernelKinds; ++i) {
        const std::size_t compute = kFirstCompute + i, bandwidth = kFirstBandwidth + i;
        const bool hides =
            !is_fitted_[compute] && !is_fitted_[bandwidth] && !set_.start.efficiency[i].is_apart();
        const double a = row.of[compute] * now_[compute], b = row.of[bandwidth] * now_[bandwidth];
        if (!is_fitted_[compute]) row.equals -= hides && a < b ? 0 : a;
        if (!is_fitted_[bandwidth]) row.equals -= hides && a >= b ? 0 : b;
      }
      for (std::size_t j = 0; j < kUnknowns; ++j)
        if (!is_fitted_[j]) row.of[j] = 0;
    }
  }

  void pull(std::size_t unknown) {
    double scale = now_[unknown];
    if (unknown == kOverhead) scale = std::max(scale, in_picoseconds(kLeastOverhead));
    if (unknown >= kFirstWait && unknown < kFirstCompute) scale = in_picoseconds(kLeastWait);
    const double weight = std::sqrt(kPull) / scale;
    LeastSquares::Row row{std::vector<double>(kUnknowns), weight * now_[unknown]};
    row.of[unknown] = weight;
    problem_.rows.push_back(std::move(row));
  }

  const MeasurementSet& set_;
  ByteRate bandwidth_;
  double slowdown_;
  LeastSquares problem_;         ///< the measured rows first
  std::vector<double> weights_;  ///< of the measured rows
  std::vector<double> now_;      ///< the unknowns at the start
  std::array<bool, kUnknowns> is_fitted_{};
  /// Of the shares, by the platform's device, and by the other.
  std::array<std::array<bool, kUnknowns>, 2> is_told_by_{};
};

/// How much slower another device is, in thousandths: the best of a grid, and then of what lies
/// between its neighbours. Throws InputError where nothing tells.
class SlowdownSearch {
 public:
  SlowdownSearch(const MeasurementSet& set, const std::vector<Time>& waits)
      : set_(set), waits_(waits) {}

  [[nodiscard]] std::int64_t run() const {
    if (!Fit(set_, waits_, kWhole).compares_devices())
      refuse(
          "has no kind of operators in common with those of the platform's own; how much slower "
          "its device is nothing tells");
    const std::int64_t best = least_squares();
    if (!is_told(best))
      refuse(
          "is of another device, and nothing tells how much slower that is: the fit is as good "
          "with a tenth more or less; expected more measurements of the same operators on both "
          "devices");
    if (best == kLeast || best == kMost)
      refuse(fmt::format("is of a device that is {}; expected one that is nearer to the platform's",
                         best == kLeast ? "twice as fast, or more" : "half as fast, or less"));
    return best;
  }

  static Ratio as_ratio(std::int64_t thousandths) {
    return Ratio{kWhole.count() / kThousandths * thousandths};
  }

 private:
  static constexpr std::int64_t kLeast = kThousandths / 2, kMost = 2 * kThousandths, kStep = 25;
  static constexpr std::int64_t kTenth = 10;
  /// Of squares, what a tenth more or less costs at least where the slowdown is told: as much as a
  /// measurement that is 1 % off. Two rows of which one alone is scaled cost 45 times that.
  static constexpr double kToldCost = 1e-4;

  [[nodiscard]] std::int64_t least_squares() const {
    std::int64_t best = kLeast;
    double least = squares(best);
    for (std::int64_t s = kLeast + kStep; s <= kMost; s += kStep)
      if (const double these = squares(s); these < least) {
        least = these;
        best = s;
      }
    return between(std::max(best - kStep, kLeast), std::min(best + kStep, kMost));
  }

  /// Whether the fit gets worse to both sides, or to the inner one at an end of the range.
  [[nodiscard]] bool is_told(std::int64_t best) const {
    const double least = squares(best);
    const auto costs = [&](std::int64_t other) { return squares(other) - least >= kToldCost; };
    return (best == kLeast || costs(best - best / kTenth)) &&
           (best == kMost || costs(best + best / kTenth));
  }

  [[nodiscard]] double squares(std::int64_t thousandths) const {
    return Fit(set_, waits_, as_ratio(thousandths)).run().squares;
  }

  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) const {
    while (least < most) {
      const std::int64_t middle = least + (most - least) / 2;
      if (squares(middle) <= squares(middle + 1))
        most = middle;
      else
        least = middle + 1;
    }
    return least;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    const auto it = std::ranges::find_if(set_.measurements,
                                         [](const Measurement& m) { return m.spec->other_device; });
    plimsoll::refuse(it->spec->where, fmt::format("measurement `{}` {}", it->spec->name, what));
  }

  const MeasurementSet& set_;
  const std::vector<Time>& waits_;
};

}  // namespace

Coefficients fit_processor(const MeasurementSet& set, const std::vector<Time>& waits) {
  const auto is_other = [](const Measurement& it) { return it.spec->other_device; };
  if (std::ranges::none_of(set.measurements, is_other))
    return Fit(set, waits, kWhole).run().coefficients;
  const Ratio slowdown = SlowdownSearch::as_ratio(SlowdownSearch(set, waits).run());
  Coefficients fitted = Fit(set, waits, slowdown).run().coefficients;
  fitted.slowdown = slowdown;
  return fitted;
}

}  // namespace plimsoll
