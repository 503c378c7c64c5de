/// How a sweep's file becomes a Sweep. Internal to this floor.
#pragma once

#include "scenario/memo.hpp"
#include "scenario/sweep.hpp"
#include "scenario/sweep_range.hpp"

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
  void find_base();
  void add_axes();
  void add_axis(const SweepLists& group, const Location& where);
  void add_policies();
  SweepAxis::Value value_of(const Node& node) const;
  std::vector<SweepAxis::Value> values_of(const SweepValues& values, const Location& where);
  void claim(const Located<std::string>& path);
  void add_formulas();
  void add_search();
  void count_points();
  void keep_points();
  [[nodiscard]] Overrides with_all_policies() const;
  void check_base();
  void check_axis(const SweepAxis& axis);
  void make_digest();

  const Node& document_;
  const std::filesystem::path folder_;
  Diagnostics diagnostics_;
  SweepSpec spec_;
  std::set<std::string> claimed_;  ///< paths that are varied or derived
  std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
  Sweep sweep_;
};

}  // namespace plimsoll
