#include "report/sweep/sweep_gaps.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The runs of one line of a grid, one after the other.
class GapLine {
 public:
  void add(const std::string& value, const std::string& status) {
    if (status == "ok") {
      close();
      has_run_ = true;
    } else if (status == "oom" || status == "deadlock" || status == "infeasible") {
      if (first_.empty()) status_here_ = status;
      (first_.empty() ? first_ : last_) = value;
    }
  }

  [[nodiscard]] const std::string& values() const { return values_; }
  [[nodiscard]] const std::string& status() const { return status_; }

 private:
  void close() {
    if (has_run_ && !first_.empty()) {
      if (values_.empty()) status_ = status_here_;
      values_ += values_.empty() ? "" : ", ";
      values_ += last_.empty() ? first_ : fmt::format("{} to {}", first_, last_);
    }
    first_.clear();
    last_.clear();
  }

  bool has_run_ = false;
  std::string first_, last_, status_here_;  ///< of those that fail, so far
  std::string values_, status_;
};

class GapSearch {
 public:
  GapSearch(const Database& results, const SweptAxes& axes) : results_(results), axes_(axes.axes) {}

  SweepGaps run() {
    for (const SweptAxis& axis : axes_)
      if (!axis.number.empty() && axis.count > 2) look_along(axis);
    return std::move(gaps_);
  }

 private:
  void look_along(const SweptAxis& axis) {
    std::string keys;
    std::vector<const SweptAxis*> others;
    for (const SweptAxis& other : axes_)
      if (&other != &axis) {
        others.push_back(&other);
        keys += other.key + ", ";
      }
    Statement rows(results_,
                   fmt::format("SELECT {}{}, status FROM runs JOIN points USING (point) WHERE {} "
                               "NOT NULL ORDER BY {}{}, point",
                               keys, axis.key, axis.number, keys, axis.number));
    const auto columns = static_cast<int>(others.size());
    GapLine line;
    std::string at;
    while (rows.step()) {
      std::string here;
      for (int c = 0; c < columns; ++c)
        here += (c > 0 ? ", " : "") + named(*others[static_cast<std::size_t>(c)], rows.text(c));
      if (here != at) {
        note(line, at, axis);
        line = GapLine();
        at = here;
      }
      line.add(label_of_value(rows.text(columns)), rows.text(columns + 1));
    }
    note(line, at, axis);
  }

  static std::string named(const SweptAxis& axis, const std::string& key) {
    const std::string value = label_of_value(key);
    return axis.is_policy() ? value : axis.label.substr(axis.label.rfind('.') + 1) + ' ' + value;
  }

  void note(const GapLine& line, const std::string& run, const SweptAxis& axis) {
    if (line.values().empty()) return;
    ++gaps_.count;
    if (gaps_.first.size() < kMostGaps)
      gaps_.first.push_back({run, axis.label, line.values(), line.status()});
  }

  const Database& results_;
  const std::vector<SweptAxis>& axes_;
  SweepGaps gaps_;
};

}  // namespace

SweepGaps sweep_gaps(const Database& results, const SweptAxes& axes) {
  return GapSearch(results, axes).run();
}

}  // namespace plimsoll
