#include "scenario/sweep_reader.hpp"

#include "base/expression_parser.hpp"
#include "scenario/run.hpp"
#include "scenario/search_path.hpp"

#include <algorithm>
#include <array>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMaxAxes = 100;
constexpr std::size_t kMostChecked =
    100;  ///< values of an axis that are tried before anything runs

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
      .format();
}

Node node_at(const std::string& text, const Location& where) {
  return parse_value(text, where.line == 0
                               ? where.origin
                               : fmt::format("{}:{}:{}", where.origin, where.line, where.column));
}

Sweep SweepReader::run() {
  auto spec = sweep_format().read(document_, diagnostics_);
  diagnostics_.throw_if_errors();
  spec_ = std::move(*spec);
  sweep_.name = spec_.name;
  sweep_.where = spec_.where;
  find_base();
  add_axes();
  add_formulas();
  add_search();
  diagnostics_.throw_if_errors();
  check_base();
  for (const SweepAxis& axis : sweep_.axes) check_axis(axis);
  if (sweep_.search) check_axis({{sweep_.search->path}, {sweep_.search->candidates}});
  diagnostics_.throw_if_errors();
  count_points();
  diagnostics_.throw_if_errors();
  make_digest();
  sweep_.warnings = diagnostics_.warnings();
  return std::move(sweep_);
}

/// A name is that of a file next to the sweep, or among the scenarios that ship.
void SweepReader::find_base() {
  sweep_.base = spec_.base;
  sweep_.folder = folder_;
  if (!spec_.base.is_scalar()) return;
  const SearchPath search(folder_);
  const std::string& name = spec_.base.scalar();
  const std::array<std::string, 3> kinds{"scenarios", "scenarios/what-if", "scenarios/papers"};
  const auto kind = std::ranges::find_if(
      kinds, [&](const std::string& it) { return search.find(name, it).has_value(); });
  const std::string& found = kind != kinds.end() ? *kind : kinds.front();
  sweep_.base = search.read(name, found, spec_.base.where());
  sweep_.folder = search.find(name, found)->parent_path();
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
  const Node* given = sweep_.base.find("policy");
  if (policies.empty() && given != nullptr) {
    if (given->is_sequence())
      policies = given->items();
    else
      policies.push_back(*given);
  }
  if (policies.empty()) return;  // the base says what it lacks
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

void SweepReader::count_points() {
  std::size_t points = 1;
  for (const SweepAxis& axis : sweep_.axes) {
    if (axis.size() > kMaxSweepPoints / points) {
      diagnostics_.error(spec_.where,
                         fmt::format("the grid has more than {} points", kMaxSweepPoints),
                         "sweep fewer values, or in several sweeps");
      return;
    }
    points *= axis.size();
  }
  sweep_.grid_points = points;
  if (!sweep_.conditions.empty()) keep_points();
  if (sweep_.points() == 0) diagnostics_.error(spec_.where, "no point meets the conditions");
}

void SweepReader::keep_points() {
  std::vector<SweepFormula> conditions;
  std::swap(conditions, sweep_.conditions);  // without them every place of the grid is a point
  std::vector<std::uint32_t> kept;
  for (std::size_t place = 0; place < sweep_.grid_points; ++place) {
    const SweepPoint point = sweep_.point(place);
    const auto holds = [&](const SweepFormula& condition) {
      try {
        return condition.expression.holds(point.values);
      } catch (const ExpressionError& problem) {
        throw InputError({{Severity::error, condition.where, problem.what(), ""}});
      }
    };
    if (std::ranges::all_of(conditions, holds)) kept.push_back(static_cast<std::uint32_t>(place));
  }
  std::swap(conditions, sweep_.conditions);
  sweep_.kept = std::move(kept);
}

Overrides SweepReader::with_all_policies() const {
  Overrides overrides;
  if (!spec_.policies.empty())
    overrides.set_in_file.emplace_back(
        Located<std::string>{"policy", spec_.policies.front().where()},
        *document_.find("policies"));
  return overrides;
}

/// The base alone, with all policies of the sweep: what is wrong here is wrong at every point.
void SweepReader::check_base() {
  const Overrides overrides = with_all_policies();
  const Scenario base = read_scenario(sweep_.base, sweep_.folder, overrides, memo_.get());
  if (sweep_.search) check_names(sweep_.search->subject_to, base.platform, diagnostics_);
  if (base.expect)
    diagnostics_.warning(base.expect->where, "a sweep is not held to the `expect` of its base");
}

/// Tries values of an axis, all else as in the base. Where none can be assigned, the path is wrong.
void SweepReader::check_axis(const SweepAxis& axis) {
  std::vector<InputError> errors;
  const std::size_t tried = std::min(axis.size(), kMostChecked);
  for (std::size_t v = 0; v < tried; ++v) {
    Overrides overrides = with_all_policies();
    for (std::size_t p = 0; p < axis.paths.size(); ++p) {
      overrides.set_in_file.emplace_back(axis.paths[p], axis.values[p][v].node);
      // A parameter that the base sets need not be one of each of the policies.
      if (axis.paths[p].value == "policy") overrides.may_lack_parameters = true;
    }
    try {
      (void)read_scenario(sweep_.base, sweep_.folder, overrides, memo_.get());
    } catch (const InputError& error) {
      errors.push_back(error);
    }
  }
  for (const InputError& error : errors) {
    for (const Diagnostic& it : error.diagnostics()) {
      if (it.severity != Severity::error) continue;
      if (errors.size() < tried)
        diagnostics_.warning(it.where, it.message, it.hint);
      else
        diagnostics_.error(it.where, it.message, it.hint);
    }
    if (errors.size() == tried) return;  // the others say the same
  }
}

void SweepReader::make_digest() {
  std::string all = "plimsoll sweep 1";
  all += key_text(sweep_.base);
  for (const SweepAxis& axis : sweep_.axes)
    for (std::size_t p = 0; p < axis.paths.size(); ++p) {
      all += key_text(axis.paths[p].value) + std::to_string(axis.size()) + 'x';
      for (const SweepAxis::Value& value : axis.values[p]) all += key_text(value.node);
    }
  for (const auto& [path, text] : spec_.derive) all += key_text(path.value) + key_text(text.value);
  for (const Located<std::string>& text : spec_.conditions) all += key_text(text.value);
  for (const char* key : {"largest", "smallest"})
    if (const Node* search = document_.find(key)) all += key + key_text(*search);
  for (const auto& [key, document] : memo_->documents.all()) all += key_text(*document);
  for (const auto& [key, document] : memo_->extended.all())
    if (document->has_value()) all += key_text(**document);
  const boost::uuids::name_generator_sha1 digest(boost::uuids::ns::oid());
  sweep_.digest = to_string(digest(all));
}

}  // namespace plimsoll
