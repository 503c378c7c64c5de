/// What a format looks like from outside: the shape that messages and JSON Schemas tell of.
#pragma once

#include "base/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// What a format looks like from outside: the part of JSON Schema that we need.
struct Shape {
  enum class Kind { any, null, boolean, integer, number, string, list, record, map, either };
  struct Field;
  Kind kind = Kind::any;
  std::string title;                ///< "link", "a size"
  std::string text;                 ///< documentation
  std::string pattern;              ///< regular expression of a string
  std::vector<std::string> values;  ///< the only values of a string
  std::optional<std::int64_t> minimum, maximum;
  std::vector<Field> fields;  ///< of a record
  std::vector<Shape> parts;   ///< items of a list, values of a map, choices of an either

  // Out of line: every description copies shapes, in some hundred files.
  Shape();
  Shape(const Shape&);
  Shape(Shape&&) noexcept;
  Shape& operator=(const Shape&);
  Shape& operator=(Shape&&) noexcept;
  ~Shape();
};
struct Shape::Field {
  std::string key;
  bool required = false;
  std::string text;
  Shape shape;
};

/// "`a`, `b` and `c`", the required ones first; no more than a message can carry.
[[nodiscard]] std::string list_of_keys(const Shape& record);

/// JSON Schema (2020-12) of a shape, pretty-printed; same bytes every time.
[[nodiscard]] std::string json_schema(const Shape& shape, const std::string& title);

/// What a node of this shape is, for messages: "a mapping with `between` and `bandwidth`".
[[nodiscard]] std::string expected(const Shape& shape);

/// Whether a node is of the kind (scalar, list, mapping) that the shape asks for.
[[nodiscard]] bool is_of_kind(const Node& node, const Shape& shape);

}  // namespace plimsoll
