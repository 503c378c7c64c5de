#include "scenario/sweep/sweep_reader.hpp"

#include "base/expression_parser.hpp"
#include "base/gather.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMaxAxes = 100;

Format<SweepValues> values_format() {
  return either(
      mapped<std::vector<Node>, SweepValues>(list_of(raw(), 1, kMaxSweepValues),
                                             [](std::vector<Node> list) {
                                               return SweepValues{std::move(list), std::nullopt};
                                             }),
      mapped<SweepRange, SweepValues>(sweep_range_format(), [](SweepRange range) {
        return SweepValues{{}, std::move(range)};
      }));
}

Format<std::vector<SweepLists>> zip_format() {
  const Format<SweepLists> group = map_of(values_format());
  return either(list_of(group),
                mapped<SweepLists, std::vector<SweepLists>>(
                    group, [](SweepLists one) { return std::vector<SweepLists>{std::move(one)}; }));
}

Format<std::vector<Located<std::string>>> conditions_format() {
  using Conditions = std::vector<Located<std::string>>;
  return either(list_of(located(text())), mapped<Located<std::string>, Conditions>(
                                              located(text()), [](Located<std::string> one) {
                                                return Conditions{std::move(one)};
                                              }));
}

bool has_only_known_keys(const Node& document) {
  const std::vector<Shape::Field> fields = sweep_format().shape.fields;
  return std::ranges::all_of(document.entries(), [&](const Node::Entry& entry) {
    return std::ranges::any_of(
        fields, [&](const Shape::Field& field) { return field.key == entry.key.scalar(); });
  });
}

}  // namespace

Format<SweepSpec> sweep_format() {
  using S = SweepSpec;
  return Record<S>("sweep", "One scenario at every point of a grid.")
      .where(&S::where)
      .required("sweep", &S::name, name(), "its name")
      .required("base", &S::base, raw(), "a scenario: a name, a path, or in place")
      .optional("platforms", &S::platforms, list_of(raw(), 1),
                "platforms, instead of that of the scenario")
      .optional("policies", &S::policies, list_of(raw(), 1),
                "policies, instead of those of the scenario")
      .optional("grid", &S::grid, map_of(values_format()),
                "paths, as `set` takes them, with a list or a range of values each")
      .optional("zip", &S::zip, zip_format(), "paths that are varied together; or a list of such")
      .optional("derive", &S::derive, map_of(located(text())),
                "paths with expressions of what is varied")
      .optional("where", &S::conditions, conditions_format(),
                "a condition on what is varied and derived, or a list of them; all must hold")
      .optional("largest", &S::largest, sweep_search_format(),
                "at every point, the largest value with which all is well")
      .optional("smallest", &S::smallest, sweep_search_format(),
                "at every point, the smallest value with which all is well")
      .optional(
          "fastest", &S::fastest, located(integer(1, 10'000)),
          "how many of the fastest points are looked for: of the others only what shows that they "
          "are slower, or do not fit")
      .format();
}

Node node_at(const std::string& text, const Location& where) {
  return parse_value(text, where.line == 0
                               ? where.origin
                               : fmt::format("{}:{}:{}", where.origin, where.line, where.column));
}

Sweep SweepReader::run() {
  // A part that cannot be read does not keep the others from being looked at.
  auto spec = sweep_format().read(document_, diagnostics_);
  const bool is_good = spec && !diagnostics_.has_errors();
  spec_ = is_good ? std::move(*spec) : parts_that_are_there();
  sweep_.name = spec_.name;
  sweep_.where = spec_.where;
  gather(diagnostics_, [&] { find_base(); });
  add_axes();
  if (are_axes_known_) add_formulas();
  add_search();
  add_fastest();
  refuse_set_twice();
  check_scenarios();
  if (are_points_known()) count_points();
  diagnostics_.throw_if_errors();
  make_digest();
  sweep_.warnings = diagnostics_.warnings();
  return std::move(sweep_);
}

/// Of a file with errors: what of it can be read. An axis without values is one whose path is
/// known.
SweepSpec SweepReader::parts_that_are_there() {
  SweepSpec spec;
  spec.where = document_.where();
  are_axes_known_ = document_.is_mapping() && has_only_known_keys(document_);
  if (!document_.is_mapping()) return spec;
  const auto read = [&](const char* key, const auto& format, auto& part) {
    const Node* node = document_.find(key);
    Diagnostics told_already;
    auto value = node != nullptr ? format.read(*node, told_already) : std::nullopt;
    const bool is_good = value && !told_already.has_errors();
    if (is_good) part = std::move(*value);
    return node == nullptr || is_good;
  };
  read("base", raw(), spec.base);
  read("derive", map_of(located(text())), spec.derive);
  read("where", conditions_format(), spec.conditions);
  read("largest", sweep_search_format(), spec.largest);
  read("smallest", sweep_search_format(), spec.smallest);
  read("fastest", located(integer(1, 10'000)), spec.fastest);
  std::vector<std::pair<Located<std::string>, Node>> grid;
  are_axes_known_ &= read("platforms", list_of(raw(), 1), spec.platforms);
  are_axes_known_ &= read("policies", list_of(raw(), 1), spec.policies);
  are_axes_known_ &= read("zip", zip_format(), spec.zip);
  are_axes_known_ &= read("grid", map_of(raw()), grid);
  for (const auto& [path, node] : grid) {
    Diagnostics told_already;
    auto values = values_format().read(node, told_already);
    if (told_already.has_errors()) values.reset();
    spec.grid.emplace_back(path, values.value_or(SweepValues{}));
  }
  return spec;
}

/// A name is that of a file next to the sweep, or among the scenarios that ship.
void SweepReader::find_base() {
  sweep_.base = spec_.base;
  sweep_.folder = folder_;
  has_base_ = document_.find("base") != nullptr && !spec_.base.is_scalar();
  if (!spec_.base.is_scalar()) return;
  const SearchPath search(folder_);
  const std::string& name = spec_.base.scalar();
  const std::string kind = scenario_kind(search, name);
  sweep_.base = search.read(name, kind, spec_.base.where());
  sweep_.folder = search.find(name, kind)->parent_path();
  has_base_ = true;
}

/// A path has one source only.
void SweepReader::claim(const Located<std::string>& path) {
  if (!claimed_.insert(path.value).second)
    diagnostics_.error(path.where, fmt::format("`{}` is varied or derived already", path.value));
}

SweepAxis::Value SweepReader::value_of(const Node& node) const {
  SweepAxis::Value value{node, {}, as_written(node)};
  if (node.is_scalar() && !node.is_quoted()) {
    value.value = parse_sweep_value(node.scalar());
  } else {
    // A policy or platform in place goes by its name in conditions.
    const Node* its_name = node.is_mapping() ? node.find("name") : nullptr;
    value.value.word = its_name != nullptr ? as_written(*its_name) : value.text;
  }
  return value;
}

std::vector<SweepAxis::Value> SweepReader::values_of(const SweepValues& values,
                                                     const Location& where) {
  std::vector<SweepAxis::Value> all;
  for (const Node& node : values.list) all.push_back(value_of(node));
  if (!values.range) return all;
  for (const std::string& text : expand(*values.range, diagnostics_))
    all.push_back(value_of(node_at(text, values.range->where)));
  if (all.empty() && !diagnostics_.has_errors())
    diagnostics_.error(where, "a range without a value");
  return all;
}

void SweepReader::add_axis(const SweepLists& group, const Location& where) {
  SweepAxis axis;
  for (const auto& [path, values] : group) {
    claim(path);
    axis.paths.push_back(path);
    axis.values.push_back(values_of(values, path.where));
    if (axis.values.back().empty() || axis.values.front().empty()) continue;  // told already
    if (axis.values.back().size() != axis.values.front().size())
      diagnostics_.error(path.where,
                         fmt::format("found {} values; expected {}, as many as `{}` beside it has",
                                     axis.values.back().size(), axis.values.front().size(),
                                     axis.paths.front().value));
  }
  if (axis.paths.empty()) {
    diagnostics_.error(where, "a group of `zip` without a path");
    return;
  }
  sweep_.axes.push_back(std::move(axis));
}

void SweepReader::add_axes() {
  const Location where = spec_.where;
  if (!spec_.platforms.empty())
    add_axis({{{"platform", spec_.platforms.front().where()}, {spec_.platforms, {}}}}, where);
  for (const auto& path_and_values : spec_.grid) add_axis({path_and_values}, where);
  for (const SweepLists& group : spec_.zip) add_axis(group, where);
  add_policies();
  if (sweep_.axes.size() > kMaxAxes)
    diagnostics_.error(where,
                       fmt::format("{} axes; expected {} at most", sweep_.axes.size(), kMaxAxes));
  for (const SweepAxis& axis : sweep_.axes)
    for (const Located<std::string>& path : axis.paths) sweep_.variables.push_back(path.value);
}

/// Unless the sweep varies `policy` as any path, those of the base are the fastest axis.
void SweepReader::add_policies() {
  if (claimed_.contains("policy")) {
    if (!spec_.policies.empty())
      diagnostics_.error(spec_.policies.front().where(), "`policy` is varied already");
    return;
  }
  std::vector<Node> policies = spec_.policies;
  const Node* given = has_base_ ? sweep_.base.find("policy") : nullptr;
  are_policies_of_base_ = policies.empty();
  if (policies.empty() && given != nullptr) {
    if (given->is_sequence())
      policies = given->items();
    else
      policies.push_back(*given);
  }
  if (policies.empty()) {
    are_axes_known_ = false;  // the base says what it lacks
    return;
  }
  const Location where = policies.front().where();
  add_axis({{{"policy", where}, {std::move(policies), {}}}}, where);
}

void SweepReader::add_formulas() {
  const auto add = [&](const Located<std::string>& text, const std::string& path,
                       std::vector<SweepFormula>& formulas) {
    try {
      SweepExpression expression(text.value, sweep_.variables);
      if (path.empty() && !expression.is_condition())
        diagnostics_.error(text.where, fmt::format("found `{}`; expected a condition, such as "
                                                   "`workload.batch <= 64`",
                                                   text.value));
      formulas.push_back({text.where, path, std::move(expression)});
    } catch (const ExpressionError& problem) {
      diagnostics_.error(text.where, problem.what());
    }
  };
  for (const auto& [path, text] : spec_.derive) {
    claim(path);
    add(text, path.value, sweep_.derived);
    sweep_.variables.push_back(path.value);
  }
  for (const Located<std::string>& text : spec_.conditions) add(text, "", sweep_.conditions);
}

void SweepReader::add_search() {
  if (spec_.largest && spec_.smallest) {
    diagnostics_.error(spec_.smallest->where,
                       "found `largest` and `smallest`; expected one of them");
    return;
  }
  if (!spec_.largest && !spec_.smallest) return;
  SweepSearchSpec& spec = spec_.largest ? *spec_.largest : *spec_.smallest;
  claim(spec.path);
  SweepSearch search{spec_.largest.has_value(), spec.path,
                     values_of({{}, std::move(spec.range)}, spec.where),
                     std::move(spec.subject_to)};
  if (!search.is_largest) std::ranges::reverse(search.candidates);
  sweep_.variables.push_back(search.path.value);
  sweep_.search = std::move(search);
}

void SweepReader::add_fastest() {
  if (!spec_.fastest) return;
  if (spec_.largest || spec_.smallest)
    diagnostics_.error(spec_.fastest->where,
                       fmt::format("found `fastest` and `{}`; expected one of them",
                                   spec_.largest ? "largest" : "smallest"));
  sweep_.fastest = static_cast<std::size_t>(spec_.fastest->value);
}

}  // namespace plimsoll
