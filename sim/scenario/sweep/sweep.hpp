/// A sweep: one scenario at every point of a grid.
///
///   sweep: vgg19-links
///   base: vgg19-offload                        # a scenario: a name, a path, or in place
///   policies: [none, offload/eager, {name: offload/greedy, release: whole}]
///   grid:
///     links.pcie.bandwidth: {from: 4 GB/s, to: 64 GB/s, count: 9, scale: log}
///     workload.batch: [64, 128, 256]
///   zip: {memories.hbm.capacity: [16 GiB, 32 GiB], memories.hbm.bandwidth: [900 GB/s, 1.1 TB/s]}
///   derive: {policy.budget: memories.hbm.capacity - 2 GiB}
///   where: workload.batch <= 128 or memories.hbm.capacity > 16 GiB
///
/// Axes are, from the slowest to the fastest: platforms, the paths of `grid` and the groups of
/// `zip` in the order of the file, policies. A point is one run: a value of every axis, and the
/// derived values. With `largest` or `smallest` (scenario/sweep/sweep_search.hpp) it is the run at
/// the value that is found; with `fastest` only points that may be among the fastest are run
/// (scenario/sweep/sweep_fastest.hpp). Combinations that violate a condition are left out. Points are numbered
/// from 0 in the order of the axes; shards and results refer to these numbers.
#pragma once

#include "base/format.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/sweep/sweep_expression.hpp"
#include "scenario/sweep/sweep_search.hpp"
#include "scenario/sweep/sweep_value.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// Most points of the whole grid, those included at which a condition does not hold.
inline constexpr std::size_t kMaxSweepPoints = 10'000'000;

/// Paths that vary together: a single path, or those of a group of `zip`.
struct SweepAxis {
  struct Value {
    Node node;
    SweepValue value;
    std::string text;  ///< as written
  };
  std::vector<Located<std::string>> paths;
  std::vector<std::vector<Value>> values;  ///< by path
  [[nodiscard]] std::size_t size() const { return values.front().size(); }
};

struct SweepFormula {
  Location where;
  std::string path;  ///< what is derived; empty for a condition
  SweepExpression expression;
};

/// One path that is searched at every point.
struct SweepSearch {
  bool is_largest = true;
  Located<std::string> path;
  std::vector<SweepAxis::Value> candidates;  ///< the one that is wanted most is the last
  Expectation subject_to;
};

/// What is assigned at a point.
struct SweepPoint {
  std::vector<std::pair<Located<std::string>, Node>> assignments;
  std::vector<std::string> texts;  ///< by variable
  std::vector<SweepValue> values;  ///< by variable
};

struct Sweep {
  std::string name;
  Location where;
  Node base;                           ///< the document of the scenario
  std::filesystem::path folder;        ///< of that document
  std::vector<SweepAxis> axes;         ///< the last one is the fastest
  std::vector<std::string> variables;  ///< paths of all axes, those derived, that searched
  std::vector<SweepFormula> derived, conditions;
  std::optional<SweepSearch> search;
  std::optional<std::size_t> fastest;  ///< how many; the others are not run
  std::size_t grid_points = 0;
  std::vector<std::uint32_t> kept;  ///< places in the grid, ascending; empty without conditions
  /// Of the expanded sweep and of every document that it was seen to read: equal digests, equal
  /// results. Places and names of files are not in it.
  std::string digest;
  std::vector<Diagnostic> warnings;

  [[nodiscard]] std::size_t points() const {
    return conditions.empty() ? grid_points : kept.size();
  }

  /// What a point may leave to others, whose axes the sweep varies: `sharding` where no ranks hold the same
  /// (MeshOptions::alike()), `sequence` and `overlap` where there is no tensor axis, and keys of `sharding` that depend
  /// on a stage, or on state.
  [[nodiscard]] Overrides leave_for_other_points() const;

  /// Without what is searched. Throws InputError for a derived value that cannot be computed.
  /// O(variables).
  [[nodiscard]] SweepPoint point(std::size_t number) const;

  /// The same in two steps: only what is varied; and what is derived from it, where those that come
  /// before one that cannot be computed are there when it throws.
  [[nodiscard]] SweepPoint varied(std::size_t number) const;
  void derive(SweepPoint& point) const;
};

/// Reads a sweep, its base and what that names. Throws InputError: all that is wrong with the
/// files, a path that nothing can be assigned to, and more than kMaxSweepPoints. A value that is
/// wrong beside others that are right is a warning, and each of its runs ends with that error.
/// O(points) with conditions, else O(values of all axes).
[[nodiscard]] Sweep load_sweep(const std::filesystem::path& path);

/// The same from a document; names are looked up next to `folder`.
[[nodiscard]] Sweep read_sweep(const Node& document, const std::filesystem::path& folder);

[[nodiscard]] std::string sweep_schema();

}  // namespace plimsoll
