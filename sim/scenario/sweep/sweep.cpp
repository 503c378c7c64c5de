#include "scenario/sweep/sweep.hpp"

#include "scenario/document/document_kind.hpp"
#include "scenario/sweep/sweep_reader.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

SweepPoint Sweep::point(std::size_t number) const {
  SweepPoint point = varied(number);
  derive(point);
  return point;
}

SweepPoint Sweep::varied(std::size_t number) const {
  std::size_t place = conditions.empty() ? number : kept[number];
  std::vector<std::size_t> digits(axes.size());
  for (std::size_t a = axes.size(); a-- > 0; place /= axes[a].size())
    digits[a] = place % axes[a].size();
  SweepPoint point;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    for (std::size_t p = 0; p < axes[a].paths.size(); ++p) {
      const SweepAxis::Value& value = axes[a].values[p][digits[a]];
      point.assignments.emplace_back(axes[a].paths[p], value.node);
      point.values.push_back(value.value);
      point.texts.push_back(value.text);
    }
  }
  return point;
}

void Sweep::derive(SweepPoint& point) const {
  for (const SweepFormula& formula : derived) {
    try {
      SweepValue value = formula.expression.evaluate(point.values);
      point.texts.push_back(to_text(value));
      point.values.push_back(std::move(value));
    } catch (const ExpressionError& problem) {
      refuse(formula.where,
             fmt::format("`{}` cannot be derived: {}", formula.path, problem.what()));
    }
    point.assignments.emplace_back(Located<std::string>{formula.path, formula.where},
                                   node_at(point.texts.back(), formula.where));
  }
}

Overrides Sweep::leave_for_other_points() const {
  const auto varies_sharding = [](const std::string& path) {
    return path.starts_with("sharding") || path == "state" || path.starts_with("state.");
  };
  Overrides overrides;
  overrides.may_lack_replicas = std::ranges::any_of(variables, sets_replicas);
  overrides.may_lack_tensor = std::ranges::any_of(variables, sets_tensor);
  overrides.may_have_idle_keys = std::ranges::any_of(variables, varies_sharding);
  return overrides;
}

Sweep load_sweep(const std::filesystem::path& path) {
  const Node document = read_document(path);
  expect_kind(document, DocumentKind::sweep);
  return read_sweep(document, path.parent_path());
}

Sweep read_sweep(const Node& document, const std::filesystem::path& folder) {
  return SweepReader(document, folder).run();
}

std::string sweep_schema() {
  return json_schema(sweep_format().shape, "Plimsoll sweep");
}

}  // namespace plimsoll
