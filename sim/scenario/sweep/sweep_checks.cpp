#include "base/expression_parser.hpp"
#include "base/gather.hpp"
#include "scenario/sweep/sweep_reader.hpp"

#include <algorithm>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Values of an axis, and points, that are tried before anything runs.
constexpr std::size_t kMostChecked = 100;

/// Whether there is something to try: else what is wrong with it is told already.
bool has_values(const SweepAxis& axis) {
  return axis.size() > 0 && std::ranges::all_of(axis.values, [&](const auto& values) {
           return values.size() == axis.size();
         });
}

}  // namespace

/// A parameter that the sweep states for a policy, and sets at every point besides, is two things.
void SweepReader::refuse_set_twice() {
  if (are_policies_of_base_) return;
  for (const SweepAxis& axis : sweep_.axes)
    for (std::size_t p = 0; p < axis.paths.size(); ++p) {
      if (axis.paths[p].value != "policy") continue;
      for (const SweepAxis::Value& policy : axis.values[p]) refuse_set_twice(policy.node);
    }
}

void SweepReader::refuse_set_twice(const Node& policy) {
  for (const std::string& path : claimed_) {
    const auto parameter = policy_parameter_of(path);
    const Node* given = parameter ? policy.find(*parameter) : nullptr;
    if (given != nullptr)
      diagnostics_.error(given->where(),
                         fmt::format("the sweep sets `{}`, which would replace this `{}`; expected "
                                     "one of the two",
                                     path, *parameter));
  }
}

void SweepReader::check_scenarios() {
  if (!has_base_) return;
  gather(diagnostics_, [&] { check_base(); });
  for (const SweepAxis& axis : sweep_.axes) check_axis(axis);
  if (sweep_.search) check_axis({{sweep_.search->path}, {sweep_.search->candidates}});
}

Overrides SweepReader::with_all_policies() const {
  Overrides overrides = sweep_.leave_for_other_points();
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
  if (!has_values(axis)) return;
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
  tell(errors, tried);
}

/// Where only some of the points can be derived, those are still run.
void SweepReader::check_derived() {
  std::vector<InputError> errors;
  const std::size_t tried = std::min(sweep_.points(), kMostChecked);
  for (std::size_t p = 0; p < tried; ++p) {
    try {
      (void)sweep_.point(p);
    } catch (const InputError& error) {
      errors.push_back(error);
    }
  }
  tell(errors, tried);
}

/// What is wrong with all that was tried is an error, with some a warning.
void SweepReader::tell(const std::vector<InputError>& errors, std::size_t tried) {
  std::vector<Diagnostic> told;
  for (const InputError& error : errors) {
    if (errors.size() == tried) return take_errors(diagnostics_, error);  // the others say the same
    for (const Diagnostic& it : error.diagnostics()) {
      if (it.severity != Severity::error || std::ranges::find(told, it) != told.end()) continue;
      diagnostics_.warning(it.where, it.message, it.hint);
      told.push_back(it);
    }
  }
}

/// Without what is unknown: an axis, or an expression that is none.
bool SweepReader::are_points_known() const {
  return are_axes_known_ && std::ranges::all_of(sweep_.axes, has_values) &&
         sweep_.derived.size() == spec_.derive.size() &&
         sweep_.conditions.size() == spec_.conditions.size();
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
  if (!sweep_.conditions.empty() && !keep_points()) return;
  if (sweep_.points() == 0)
    diagnostics_.error(spec_.where, "no point meets the conditions");
  else
    check_derived();
}

/// Whether the conditions could be judged. A place at which a value cannot be derived is a point:
/// its row says why.
bool SweepReader::keep_points() {
  std::vector<SweepFormula> conditions;
  std::swap(conditions, sweep_.conditions);  // without them every place of the grid is a point
  for (std::size_t place = 0; place < sweep_.grid_points; ++place) {
    SweepPoint point = sweep_.varied(place);
    bool is_kept = true;
    try {
      sweep_.derive(point);
      for (const SweepFormula& condition : conditions) is_kept = holds(condition, point) && is_kept;
    } catch (const InputError&) {
      // Kept.
    }
    if (diagnostics_.has_errors()) return false;
    if (is_kept) sweep_.kept.push_back(static_cast<std::uint32_t>(place));
  }
  std::swap(conditions, sweep_.conditions);
  return true;
}

bool SweepReader::holds(const SweepFormula& condition, const SweepPoint& point) {
  try {
    return condition.expression.holds(point.values);
  } catch (const ExpressionError& problem) {
    diagnostics_.error(condition.where, problem.what());
    return false;
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
  for (const char* key : {"largest", "smallest", "fastest"})
    if (const Node* search = document_.find(key)) all += key + key_text(*search);
  for (const auto& [key, document] : memo_->documents.all()) all += key_text(*document);
  for (const auto& [key, document] : memo_->extended_platforms.all())
    if (document->has_value()) all += key_text(**document);
  const boost::uuids::name_generator_sha1 digest(boost::uuids::ns::oid());
  sweep_.digest = to_string(digest(all));
}

}  // namespace plimsoll
