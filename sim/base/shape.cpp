#include "base/shape.hpp"

#include <algorithm>

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

std::string quoted(const std::string& text) {
  return '`' + text + '`';
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

}  // namespace plimsoll
