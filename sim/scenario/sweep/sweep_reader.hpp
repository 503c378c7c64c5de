/// From a sweep's file to a Sweep. Internal to this floor.
#pragma once

#include "scenario/document/memo.hpp"
#include "scenario/sweep/sweep.hpp"
#include "scenario/sweep/sweep_range.hpp"

#include <set>

namespace plimsoll {

/// The values of one path: a list, or a range.
struct SweepValues {
  std::vector<Node> list;
  std::optional<SweepRange> range;
};

using SweepLists = std::vector<std::pair<Located<std::string>, SweepValues>>;

/// The file as written.
struct SweepSpec {
  Location where;
  std::string name;
  Node base;
  std::vector<Node> policies, platforms;
  SweepLists grid;
  std::vector<SweepLists> zip;
  std::vector<std::pair<Located<std::string>, Located<std::string>>> derive;
  std::vector<Located<std::string>> conditions;
  std::optional<SweepSearchSpec> largest, smallest;
  std::optional<Located<std::int64_t>> fastest;
};

[[nodiscard]] Format<SweepSpec> sweep_format();

/// A scalar that errors place at `where`.
[[nodiscard]] Node node_at(const std::string& text, const Location& where);

class SweepReader {
 public:
  SweepReader(const Node& document, std::filesystem::path folder)
      : document_(document), folder_(std::move(folder)) {}

  /// Throws InputError with all that is wrong.
  [[nodiscard]] Sweep run();

 private:
  SweepSpec parts_that_are_there();
  void find_base();
  void add_axes();
  void add_axis(const SweepLists& group, const Location& where);
  void add_policies();
  SweepAxis::Value value_of(const Node& node) const;
  std::vector<SweepAxis::Value> values_of(const SweepValues& values, const Location& where);
  void claim(const Located<std::string>& path);
  void add_formulas();
  void add_search();
  void add_fastest();

  // What is wrong with what they make together (sweep_checks.cpp).
  void refuse_set_twice();
  void refuse_set_twice(const Node& policy);
  void check_scenarios();
  [[nodiscard]] Overrides with_all_policies() const;
  void check_base();
  void check_axis(const SweepAxis& axis);
  void check_derived();
  void tell(const std::vector<InputError>& errors, std::size_t tried);
  [[nodiscard]] bool are_points_known() const;
  void count_points();
  bool keep_points();
  bool holds(const SweepFormula& condition, const SweepPoint& point);
  void make_digest();

  const Node& document_;
  const std::filesystem::path folder_;
  Diagnostics diagnostics_;
  SweepSpec spec_;
  bool has_base_ = false, are_axes_known_ = true, are_policies_of_base_ = false;
  std::set<std::string> claimed_;  ///< paths that are varied, derived or searched
  std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
  Sweep sweep_;
};

}  // namespace plimsoll
