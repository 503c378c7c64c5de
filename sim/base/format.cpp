#include "base/format.hpp"

#include <charconv>

namespace plimsoll {

namespace detail {

void report_kind(const Node& node, const Shape& shape, Diagnostics& diagnostics) {
  diagnostics.error(node.where(), "found " + node.describe() + ", expected " + expected(shape));
}

/// "the memory", or "`parallel`": a title that is a key is no noun.
static std::string the(const Shape& record) {
  return (record.title.starts_with('`') ? "" : "the ") + record.title;
}

void report_unknown_key(const Node& key, const Shape& record, Diagnostics& diagnostics) {
  if (diagnostics.is_full()) return diagnostics.error({}, {});
  std::vector<std::string> known;
  for (const Shape::Field& field : record.fields) known.push_back(field.key);
  std::string hint = did_you_mean(key.scalar(), known);
  std::string message = "unknown key " + key.describe() + " in " + the(record);
  if (hint.empty()) message += ", expected " + list_of_keys(record);
  diagnostics.error(key.where(), std::move(message), std::move(hint));
}

void report_unknown_word(const Node& node, const Shape& words, Diagnostics& diagnostics) {
  diagnostics.error(node.where(), "found " + node.describe() + ", expected " + expected(words),
                    did_you_mean(node.scalar(), words.values));
}

void report_missing_key(const Node& node, const std::string& key, const Shape& record,
                        Diagnostics& diagnostics) {
  diagnostics.error(node.where(), the(record) + " has no `" + key + "`");
}

const std::string* scalar_of(const Node& node, const Shape& shape, Diagnostics& diagnostics) {
  if (node.is_scalar()) return &node.scalar();
  report_kind(node, shape, diagnostics);
  return nullptr;
}

bool has_length(const Node& list, std::size_t least, std::size_t most, Diagnostics& diagnostics) {
  const std::size_t length = list.items().size();
  if (length >= least && length <= most) return true;
  const std::string bound =
      length < least ? "at least " + std::to_string(least) : "at most " + std::to_string(most);
  diagnostics.error(list.where(), "the list has " + std::to_string(length) +
                                      (length == 1 ? " item" : " items") + ", expected " + bound);
  return false;
}

std::optional<Located<std::string>> read_name(const Node& key, Diagnostics& diagnostics) {
  static const Format<std::string> kName = name();
  std::optional<std::string> text = kName.read(key, diagnostics);
  if (!text) return std::nullopt;
  return Located<std::string>{std::move(*text), key.where()};
}

}  // namespace detail

namespace {

constexpr std::size_t kLongestText = std::size_t{64} << 10;
constexpr std::size_t kLongestName = 200;
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";

/// A bare number above 1 is a percentage as often as not, so it is asked which.
bool is_ambiguous(Ratio share, const std::string& written) {
  return share > kWhole && !written.ends_with('%');
}

/// A share as a bare number or a percentage, with bounds in words.
Format<Ratio> share(Ratio least, Ratio most, const std::string& title) {
  Shape number;
  number.kind = Shape::Kind::number;
  number.minimum = 0;
  number.maximum = 1;
  Shape percentage;
  percentage.kind = Shape::Kind::string;
  percentage.pattern = quantity_pattern<Ratio>();
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = title;
  shape.parts = {number, percentage};
  auto read = [shape, least, most](const Node& node,
                                   Diagnostics& diagnostics) -> std::optional<Ratio> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    Parsed<Ratio> parsed = parse_quantity<Ratio>(*written);
    const bool is_within = parsed.value && *parsed.value >= least && *parsed.value <= most;
    if (is_within && !is_ambiguous(*parsed.value, *written)) return parsed.value;
    if (parsed.value) parsed.problem = "found " + node.describe() + ", expected " + shape.title;
    if (is_within) parsed.hint = "did you mean `" + *written + " %`?";
    diagnostics.error(node.where(), std::move(parsed.problem), std::move(parsed.hint));
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

Shape scalar_shape(Shape::Kind kind, std::string title) {
  Shape shape;
  shape.kind = kind;
  shape.title = std::move(title);
  return shape;
}

}  // namespace

Format<Ratio> efficiency() {
  return share(Ratio(1), kWhole, "a share above 0 and at most 1, such as `0.82` or `82 %`");
}

Format<Ratio> fraction() {
  return share(Ratio(0), Ratio(Ratio::unlimited().count() - 1),
               "a share such as `0.5` or `50 %`, above 1 with `%`");
}

Format<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum) {
  Shape shape =
      scalar_shape(Shape::Kind::integer, "a whole number from " + std::to_string(minimum) + " to " +
                                             std::to_string(maximum));
  shape.minimum = minimum;
  shape.maximum = maximum;
  auto read = [shape, minimum, maximum](const Node& node,
                                        Diagnostics& diagnostics) -> std::optional<std::int64_t> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    std::int64_t value = 0;
    const char* end = written->data() + written->size();
    const auto [stop, error] = std::from_chars(written->data(), end, value);
    const bool whole = error == std::errc{} && stop == end && !node.is_quoted();
    if (whole && value >= minimum && value <= maximum) return value;
    detail::report_kind(node, shape, diagnostics);
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

Format<bool> boolean() {
  Shape shape = scalar_shape(Shape::Kind::boolean, "`true` or `false`");
  auto read = [shape](const Node& node, Diagnostics& diagnostics) -> std::optional<bool> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    if (!node.is_quoted() && (*written == "true" || *written == "false")) return *written == "true";
    detail::report_kind(node, shape, diagnostics);
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

Format<std::string> text() {
  Shape shape = scalar_shape(Shape::Kind::string, "a text");
  auto read = [shape](const Node& node, Diagnostics& diagnostics) -> std::optional<std::string> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    if (written->size() <= kLongestText) return *written;
    diagnostics.error(node.where(), "a text of " + std::to_string(written->size()) +
                                        " bytes, expected at most " + std::to_string(kLongestText));
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

Format<std::string> name() {
  Shape shape = scalar_shape(Shape::Kind::string, "a name (letters, digits, `_ - . /`)");
  shape.pattern = "^[A-Za-z0-9_./-]{1,200}$";
  auto read = [shape](const Node& node, Diagnostics& diagnostics) -> std::optional<std::string> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    const bool good = !written->empty() && written->size() <= kLongestName &&
                      written->find_first_not_of(kNameCharacters) == std::string::npos;
    if (good) return *written;
    if (written->size() > kLongestName)
      diagnostics.error(node.where(), "a name of " + std::to_string(written->size()) +
                                          " bytes, expected at most " +
                                          std::to_string(kLongestName));
    else
      detail::report_kind(node, shape, diagnostics);
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

Format<Node> raw() {
  auto read = [](const Node& node, Diagnostics&) { return std::optional<Node>(node); };
  return {std::move(read), Shape{}};
}

}  // namespace plimsoll
