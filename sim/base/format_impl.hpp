/// The templates of base/format.hpp.
#pragma once

#include "base/format.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

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
[[nodiscard]] std::optional<Located<std::string>> read_name(const Node& key,
                                                            Diagnostics& diagnostics);

/// Where a member lies in its record, in bytes: what a pointer to it holds in the ABI of GCC and Clang.
/// Fields of one type then share one reader, whatever record they are of.
template <class T, class Member>
[[nodiscard]] std::ptrdiff_t offset_of(Member T::*member) {
  static_assert(sizeof(member) == sizeof(std::ptrdiff_t));
  return std::bit_cast<std::ptrdiff_t>(member);
}

/// What is stored `offset` bytes from the begin of a record is an M or a std::optional<M>.
template <class Stored, class M>
void add_field(RecordReader& reader, std::string_view key, bool required, std::ptrdiff_t offset,
               Format<M>& format, std::string_view text) {
  reader.add_field(key, required, text, format.shape,
                   [offset, read = std::move(format.read)](const Node& node, void* record,
                                                           Diagnostics& diagnostics) {
                     std::optional<M> value = read(node, diagnostics);
                     if (!value) return false;
                     *reinterpret_cast<Stored*>(static_cast<std::byte*>(record) + offset) =
                         std::move(*value);
                     return true;
                   });
}

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

template <class T>
Record<T>::Record(std::string_view title, std::string_view text) : reader_(title, text) {}

template <class T>
template <class M>
Record<T>& Record<T>::required(std::string_view key, M T::*member, Format<M> format,
                               std::string_view text) {
  detail::add_field<M>(reader_, key, true, detail::offset_of(member), format, text);
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::optional(std::string_view key, M T::*member, Format<M> format,
                               std::string_view text) {
  detail::add_field<M>(reader_, key, false, detail::offset_of(member), format, text);
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::optional(std::string_view key, std::optional<M> T::*member, Format<M> format,
                               std::string_view text) {
  detail::add_field<std::optional<M>>(reader_, key, false, detail::offset_of(member), format, text);
  return *this;
}

template <class T>
template <class M>
Record<T>& Record<T>::element(std::string_view key, std::size_t index, Format<M> format,
                              std::string_view text) {
  const std::size_t offset = index * sizeof(std::optional<M>);
  detail::add_field<std::optional<M>>(reader_, key, false, static_cast<std::ptrdiff_t>(offset),
                                      format, text);
  return *this;
}

template <class T>
Record<T>& Record<T>::where(Location T::*member) {
  reader_.keep_place(detail::offset_of(member));
  return *this;
}

template <class T>
Record<T>& Record<T>::check(std::vector<std::string> keys,
                            std::function<void(T&, const Node&, Diagnostics&)> check) {
  reader_.add_check(std::move(keys), [check = std::move(check)](void* record, const Node& node,
                                                                Diagnostics& diagnostics) {
    check(*static_cast<T*>(record), node, diagnostics);
  });
  return *this;
}

template <class T>
Format<T> Record<T>::format() const {
  auto read = [reader = std::make_shared<const detail::RecordReader>(reader_)](
                  const Node& node, Diagnostics& diagnostics) -> std::optional<T> {
    std::optional<T> record(std::in_place);
    if (!reader->read(node, &*record, diagnostics)) record.reset();
    return record;
  };
  return {std::move(read), reader_.shape()};
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
