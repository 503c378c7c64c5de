#include "base/format.hpp"

#include <charconv>

#include <nlohmann/json.hpp>

namespace plimsoll {

Shape::Shape() = default;
Shape::Shape(const Shape&) = default;
Shape::Shape(Shape&&) noexcept = default;
Shape& Shape::operator=(const Shape&) = default;
Shape& Shape::operator=(Shape&&) noexcept = default;
Shape::~Shape() = default;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = std::size_t{64} << 10;
constexpr std::size_t kLongestName = 200;
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";

std::string quoted(const std::string& text) {
  return '`' + text + '`';
}

/// "`a`, `b` and `c`", the required ones first; no more than a message can carry.
std::string list_of_keys(const Shape& record) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> keys;
  for (const bool required : {true, false})
    for (const Shape::Field& field : record.fields)
      if (field.required == required) keys.push_back(quoted(field.key));
  const std::size_t shown = std::min(keys.size(), kMost);
  std::string list;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == keys.size();
    if (i > 0) list += last ? " and " : ", ";
    list += keys[i];
  }
  return keys.size() > kMost ? list + ", ..." : list;
}

Json schema_of(const Shape& shape);

Json schema_of_record(const Shape& shape) {
  Json schema{{"type", "object"}};
  Json properties = Json::object();
  Json required = Json::array();
  for (const Shape::Field& field : shape.fields) {
    Json property = schema_of(field.shape);
    if (!field.text.empty()) property["description"] = field.text;
    properties[field.key] = std::move(property);
    if (field.required) required.push_back(field.key);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

Json schema_of_list(const Shape& shape) {
  Json schema{{"type", "array"}, {"items", schema_of(shape.parts.at(0))}};
  if (shape.minimum) schema["minItems"] = *shape.minimum;
  if (shape.maximum) schema["maxItems"] = *shape.maximum;
  return schema;
}

Json schema_of_map(const Shape& shape) {
  return {{"type", "object"},
          {"propertyNames", {{"pattern", "^[A-Za-z0-9_./-]{1,200}$"}}},
          {"additionalProperties", schema_of(shape.parts.at(0))}};
}

Json schema_of_scalar(const Shape& shape, const char* type) {
  Json schema{{"type", type}};
  if (!shape.pattern.empty()) schema["pattern"] = shape.pattern;
  if (!shape.values.empty()) schema["enum"] = shape.values;
  if (shape.minimum) schema["minimum"] = *shape.minimum;
  if (shape.maximum) schema["maximum"] = *shape.maximum;
  return schema;
}

Json schema_of(const Shape& shape) {
  Json schema = Json::object();
  switch (shape.kind) {
    case Shape::Kind::any:
      break;
    case Shape::Kind::null:
      schema = schema_of_scalar(shape, "null");
      break;
    case Shape::Kind::boolean:
      schema = schema_of_scalar(shape, "boolean");
      break;
    case Shape::Kind::integer:
      schema = schema_of_scalar(shape, "integer");
      break;
    case Shape::Kind::number:
      schema = schema_of_scalar(shape, "number");
      break;
    case Shape::Kind::string:
      schema = schema_of_scalar(shape, "string");
      break;
    case Shape::Kind::list:
      schema = schema_of_list(shape);
      break;
    case Shape::Kind::map:
      schema = schema_of_map(shape);
      break;
    case Shape::Kind::record:
      schema = schema_of_record(shape);
      break;
    case Shape::Kind::either:
      for (const Shape& part : shape.parts) schema["anyOf"].push_back(schema_of(part));
      break;
  }
  if (!shape.text.empty()) schema["description"] = shape.text;
  return schema;
}

}  // namespace

std::string json_schema(const Shape& shape, const std::string& title) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(schema_of(shape));
  return schema.dump(2) + '\n';
}

std::string expected(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::record:
      return "a mapping with " + list_of_keys(shape);
    case Shape::Kind::any:
      return "a value";
    default:
      return shape.title;
  }
}

bool is_of_kind(const Node& node, const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::any:
      return true;
    case Shape::Kind::null:
      return node.is_null();
    case Shape::Kind::list:
      return node.is_sequence();
    case Shape::Kind::record:
    case Shape::Kind::map:
      return node.is_mapping();
    case Shape::Kind::either:
      return std::any_of(shape.parts.begin(), shape.parts.end(),
                         [&](const Shape& part) { return is_of_kind(node, part); });
    default:
      return node.is_scalar();
  }
}

namespace detail {

void report_kind(const Node& node, const Shape& shape, Diagnostics& diagnostics) {
  diagnostics.error(node.where(), "found " + node.describe() + ", expected " + expected(shape));
}

void report_unknown_key(const Node& key, const Shape& record, Diagnostics& diagnostics) {
  if (diagnostics.is_full()) return diagnostics.error({}, {});
  std::vector<std::string> known;
  for (const Shape::Field& field : record.fields) known.push_back(field.key);
  std::string hint = did_you_mean(key.scalar(), known);
  std::string message = "unknown key " + key.describe() + " in the " + record.title;
  if (hint.empty()) message += ", expected " + list_of_keys(record);
  diagnostics.error(key.where(), std::move(message), std::move(hint));
}

void report_unknown_word(const Node& node, const Shape& words, Diagnostics& diagnostics) {
  diagnostics.error(node.where(), "found " + node.describe() + ", expected " + expected(words),
                    did_you_mean(node.scalar(), words.values));
}

void report_missing_key(const Node& node, const std::string& key, const Shape& record,
                        Diagnostics& diagnostics) {
  diagnostics.error(node.where(), "the " + record.title + " has no `" + key + "`");
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

void add_shape(Shape& record, std::string_view key, bool required, std::string_view text,
               const Shape& shape) {
  record.fields.push_back({std::string(key), required, std::string(text), shape});
}

Shape record_shape(std::string_view title, std::string_view text) {
  Shape shape;
  shape.kind = Shape::Kind::record;
  shape.title = title;
  shape.text = text;
  return shape;
}

std::optional<Located<std::string>> read_name(const Node& key, Diagnostics& diagnostics) {
  static const Format<std::string> kName = name();
  std::optional<std::string> text = kName.read(key, diagnostics);
  if (!text) return std::nullopt;
  return Located<std::string>{std::move(*text), key.where()};
}

}  // namespace detail

namespace {

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
