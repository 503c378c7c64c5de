/// Reads a mapping with known keys into a record whose type only its fields know: the part of
/// Record (base/format.hpp) that would otherwise be compiled again for every type of record.
#pragma once

#include "base/document.hpp"
#include "base/shape.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

namespace detail {

class RecordReader {
 public:
  RecordReader(std::string_view title, std::string_view text);

  /// Reads one field into the record; false after reporting.
  using ReadField = std::function<bool(const Node&, void* record, Diagnostics&)>;
  using RunCheck = std::function<void(void* record, const Node&, Diagnostics&)>;

  void add_field(std::string_view key, bool required, std::string_view text, const Shape& shape,
                 ReadField read);
  /// The record has a Location so many bytes from its begin, which gets its place.
  void keep_place(std::ptrdiff_t offset) { place_ = offset; }
  void add_check(std::vector<std::string> keys, RunCheck run);

  [[nodiscard]] const Shape& shape() const { return shape_; }

  /// Reads the fields that the node has. Every field is read, whatever becomes of the
  /// others; a check runs if all fields that it needs were read, or were left out rather than
  /// misspelt. False after reporting. O(entries of the node x fields).
  [[nodiscard]] bool read(const Node& node, void* record, Diagnostics& diagnostics) const;

 private:
  struct Field {
    std::string key;
    bool required = false;
    ReadField read;
  };
  struct Check {
    std::vector<std::string> keys;
    RunCheck run;
  };
  class Outcome;

  Shape shape_;
  std::optional<std::ptrdiff_t> place_;
  std::vector<Field> fields_;
  std::vector<Check> checks_;
};

}  // namespace detail

}  // namespace plimsoll
