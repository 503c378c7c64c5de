/// The templates of base/format.hpp.
#pragma once

#include "base/format.hpp"

#include <algorithm>

namespace plimsoll {

namespace detail {

/// Reports that `node` is not what `shape` says.
void report_kind(const Node& node, const Shape& shape, Diagnostics& diagnostics);
/// Reports an unknown key of a record or an unknown word, with the nearest known one.
void report_unknown_key(const Node& key, const Shape& record, Diagnostics& diagnostics);
void report_unknown_word(const Node& node, const Shape& words, Diagnostics& diagnostics);
void report_missing_key(const Node& node, const std::string& key, const Shape& record,
                        Diagnostics& diagnostics);
/// Reads a scalar's text; nothing, after reporting, where the node is none.
[[nodiscard]] const std::string* scalar_of(const Node& node, const Shape& shape,
                                           Diagnostics& diagnostics);
/// Checks a list's length; false after reporting.
[[nodiscard]] bool has_length(const Node& list, std::size_t least, std::size_t most,
                              Diagnostics& diagnostics);
void add_field(Shape& record, const std::string& key, bool required, std::string text,
               const Shape& shape);
[[nodiscard]] std::optional<Located<std::string>> read_name(const Node& key,
                                                            Diagnostics& diagnostics);

}  // namespace detail

template <class T>
Format<T> quantity(Unlimited unlimited) {
  const bool allow_unlimited = unlimited == Unlimited::allowed;
  Shape shape;
  shape.kind = Shape::Kind::string;
  shape.title = "a quantity such as `" + quantity_example<T>() + '`';
  shape.pattern = quantity_pattern<T>(allow_unlimited);
  auto read = [shape, allow_unlimited](const Node& node,
                                       Diagnostics& diagnostics) -> std::optional<T> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    Parsed<T> parsed = parse_quantity<T>(*written, allow_unlimited);
    if (!parsed.value)
      diagnostics.error(node.where(), std::move(parsed.problem), std::move(parsed.hint));
    return parsed.value;
  };
  return {std::move(read), std::move(shape)};
}

template <class T>
Format<T> one_of(std::vector<std::pair<std::string, T>> words) {
  Shape shape;
  shape.kind = Shape::Kind::string;
  for (const auto& [word, value] : words) {
    shape.title += (shape.title.empty() ? "`" : ", `") + word + '`';
    shape.values.push_back(word);
  }
  shape.title.insert(0, "one of ");
  auto read = [shape, words = std::move(words)](const Node& node,
                                                Diagnostics& diagnostics) -> std::optional<T> {
    const std::string* written = detail::scalar_of(node, shape, diagnostics);
    if (written == nullptr) return std::nullopt;
    for (const auto& [word, value] : words)
      if (word == *written) return value;
    detail::report_unknown_word(node, shape, diagnostics);
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

template <class T>
Format<std::vector<T>> list_of(Format<T> item, std::size_t least, std::size_t most) {
  Shape shape;
  shape.kind = Shape::Kind::list;
  shape.title = "a list";
  if (least > 0) shape.minimum = static_cast<std::int64_t>(least);
  shape.maximum = static_cast<std::int64_t>(most);
  shape.parts = {item.shape};
  auto read = [shape, item = std::move(item.read), least, most](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<std::vector<T>> {
    if (!node.is_sequence()) {
      detail::report_kind(node, shape, diagnostics);
      return std::nullopt;
    }
    bool good = detail::has_length(node, least, most, diagnostics);
    std::vector<T> values;
    values.reserve(node.items().size());
    for (const Node& element : node.items()) {
      std::optional<T> value = item(element, diagnostics);
      good = good && value.has_value();
      if (good) values.push_back(std::move(*value));
    }
    if (!good) return std::nullopt;
    return values;
  };
  return {std::move(read), std::move(shape)};
}

template <class T>
Format<Located<T>> located(Format<T> inner) {
  auto read = [inner = std::move(inner.read)](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<Located<T>> {
    std::optional<T> value = inner(node, diagnostics);
    if (!value) return std::nullopt;
    return Located<T>{std::move(*value), node.where()};
  };
  return {std::move(read), std::move(inner.shape)};
}

template <class T>
Format<std::vector<std::pair<Located<std::string>, T>>> map_of(Format<T> value) {
  using Entries = std::vector<std::pair<Located<std::string>, T>>;
  Shape shape;
  shape.kind = Shape::Kind::map;
  shape.title = "a mapping of names";
  shape.parts = {value.shape};
  auto read = [shape, value = std::move(value.read)](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<Entries> {
    if (!node.is_mapping()) {
      detail::report_kind(node, shape, diagnostics);
      return std::nullopt;
    }
    bool good = true;
    Entries entries;
    entries.reserve(node.entries().size());
    for (const Node::Entry& entry : node.entries()) {
      std::optional<Located<std::string>> key = detail::read_name(entry.key, diagnostics);
      std::optional<T> read_value = value(entry.value, diagnostics);
      good = good && key && read_value;
      if (good) entries.emplace_back(std::move(*key), std::move(*read_value));
    }
    if (!good) return std::nullopt;
    return entries;
  };
  return {std::move(read), std::move(shape)};
}

template <class T, class U>
Format<U> mapped(Format<T> inner, std::function<U(T)> convert) {
  auto read = [inner = std::move(inner.read), convert = std::move(convert)](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<U> {
    std::optional<T> value = inner(node, diagnostics);
    if (!value) return std::nullopt;
    return convert(std::move(*value));
  };
  return {std::move(read), std::move(inner.shape)};
}

template <class T>
Format<T> either(Format<T> first, Format<T> second) {
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = expected(first.shape) + " or " + expected(second.shape);
  shape.parts = {first.shape, second.shape};
  auto read = [shape, first = std::move(first.read), second = std::move(second.read)](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<T> {
    if (is_of_kind(node, shape.parts[0])) return first(node, diagnostics);
    if (is_of_kind(node, shape.parts[1])) return second(node, diagnostics);
    detail::report_kind(node, shape, diagnostics);
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

/// Reads one field into the record; false after reporting.
template <class T>
struct Record<T>::Field {
  std::string key;
  bool required = false;
  std::function<bool(const Node&, T&, Diagnostics&)> read;
};

template <class T>
struct Record<T>::Check {
  std::vector<std::string> keys;
  std::function<void(T&, const Node&, Diagnostics&)> run;
};

namespace detail {

/// What became of the fields of one record.
struct ReadFields {
  enum class State : std::uint8_t { left_out, good, bad };
  std::vector<State> states;  ///< by field
  bool all_known = true;      ///< no key that is none of the record's

  void add(std::size_t field, bool good) {
    if (states[field] != State::bad) states[field] = good ? State::good : State::bad;
  }
  [[nodiscard]] bool is_there(std::size_t field) const { return states[field] != State::left_out; }
  [[nodiscard]] bool all_good() const;
  /// Whether a check of `keys` says nothing wrong: a key that is not there may be one misspelt.
  [[nodiscard]] bool suffice_for(const std::vector<std::string>& keys, const Shape& record) const;
};

/// A field whose member is an M or a std::optional<M>.
template <class T, class Member, class M>
std::function<bool(const Node&, T&, Diagnostics&)> reader_into(Member T::*member,
                                                               Format<M> format) {
  return [member, read = std::move(format.read)](const Node& node, T& record,
                                                 Diagnostics& diagnostics) {
    std::optional<M> value = read(node, diagnostics);
    if (value) record.*member = std::move(*value);
    return value.has_value();
  };
}

}  // namespace detail

template <class T>
Record<T>::Record(std::string title, std::string text) {
  shape_.kind = Shape::Kind::record;
  shape_.title = std::move(title);
  shape_.text = std::move(text);
}

template <class T>
template <class M>
Record<T>& Record<T>::required(std::string key, M T::*member, Format<M> format, std::string text) {
  detail::add_field(shape_, key, true, std::move(text), format.shape);
  fields_.push_back({std::move(key), true, detail::reader_into(member, std::move(format))});
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::optional(std::string key, M T::*member, Format<M> format, std::string text) {
  detail::add_field(shape_, key, false, std::move(text), format.shape);
  fields_.push_back({std::move(key), false, detail::reader_into(member, std::move(format))});
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::optional(std::string key, std::optional<M> T::*member, Format<M> format,
                               std::string text) {
  detail::add_field(shape_, key, false, std::move(text), format.shape);
  fields_.push_back({std::move(key), false, detail::reader_into(member, std::move(format))});
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::element(std::string key, std::size_t index, Format<M> format,
                              std::string text) {
  detail::add_field(shape_, key, false, std::move(text), format.shape);
  auto read = [index, format = std::move(format)](const Node& node, T& record,
                                                  Diagnostics& diagnostics) {
    record[index] = format.read(node, diagnostics);
    return record[index].has_value();
  };
  fields_.push_back({std::move(key), false, std::move(read)});
  return *this;
}

template <class T>
Record<T>& Record<T>::where(Location T::*member) {
  keep_place_ = [member](T& record, const Node& node) { record.*member = node.where(); };
  return *this;
}

template <class T>
Record<T>& Record<T>::check(std::vector<std::string> keys,
                            std::function<void(T&, const Node&, Diagnostics&)> check) {
  checks_.push_back({std::move(keys), std::move(check)});
  return *this;
}

template <class T>
Format<T> Record<T>::format() const {
  auto read = [shape = shape_, fields = fields_, checks = checks_, keep_place = keep_place_](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<T> {
    if (!node.is_mapping()) {
      detail::report_kind(node, shape, diagnostics);
      return std::nullopt;
    }
    T record{};
    if (keep_place) keep_place(record, node);
    detail::ReadFields fields_read{std::vector<detail::ReadFields::State>(fields.size()), true};
    for (const Node::Entry& entry : node.entries()) {
      const auto field = std::find_if(fields.begin(), fields.end(),
                                      [&](const Field& f) { return f.key == entry.key.scalar(); });
      if (field == fields.end()) {
        detail::report_unknown_key(entry.key, shape, diagnostics);
        fields_read.all_known = false;
      } else {
        fields_read.add(static_cast<std::size_t>(field - fields.begin()),
                        field->read(entry.value, record, diagnostics));
      }
    }
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (!fields[f].required || fields_read.is_there(f)) continue;
      detail::report_missing_key(node, fields[f].key, shape, diagnostics);
      fields_read.add(f, false);
    }
    for (const Check& check : checks)
      if (fields_read.suffice_for(check.keys, shape)) check.run(record, node, diagnostics);
    if (!fields_read.all_good()) return std::nullopt;
    return record;
  };
  return {std::move(read), shape_};
}

template <class T>
Format<T> checked(Format<T> inner, std::function<void(const Node&, Diagnostics&)> check) {
  auto read = [inner = std::move(inner.read), check = std::move(check)](const Node& node,
                                                                        Diagnostics& diagnostics) {
    std::optional<T> value = inner(node, diagnostics);
    check(node, diagnostics);
    return value;
  };
  return {std::move(read), std::move(inner.shape)};
}

}  // namespace plimsoll
