#include "policy/hybrid/graph/runtime_factor.hpp"

#include "base/quantity_text.hpp"
#include "engine/wide.hpp"

#include <fmt/format.h>

namespace plimsoll {

Format<Located<Ratio>> runtime_factor_format() {
  Shape shape;
  shape.kind = Shape::Kind::number;
  shape.title = "a factor of at least 1, such as `1.5`";
  shape.minimum = 1;
  const auto read = [shape](const Node& node, Diagnostics& diagnostics) -> std::optional<Ratio> {
    if (node.is_scalar()) {
      const Parsed<Ratio> parsed = parse_quantity<Ratio>(node.scalar());
      if (parsed.value && *parsed.value >= kWhole) return parsed.value;
    }
    diagnostics.error(node.where(), "found " + node.describe() + ", expected " + shape.title);
    return std::nullopt;
  };
  return located(Format<Ratio>{read, shape});
}

Time most_time(Time once, Ratio factor) {
  const Signed128 most = Signed128{once.count()} * factor.count() / kWhole.count();
  if (most >= Time::unlimited().count()) return Time::unlimited();
  return Time{static_cast<std::int64_t>(most)};
}

std::string in_time_in_words(const std::optional<Located<Ratio>>& factor) {
  if (!factor) return "";
  return fmt::format(" and ends within {} times the operators", as_fraction(factor->value));
}

}  // namespace plimsoll
