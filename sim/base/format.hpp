/// Descriptions of file formats that read and document themselves.
///
/// A Format<T> says how a T is written in a file. It is a value, built by combination:
///
///   struct LinkSpec { std::vector<std::string> between; ByteRate bandwidth; Time latency; };
///
///   Format<LinkSpec> link_format() {
///     return Record<LinkSpec>("link", "Joins two memories.")
///         .required("between", &LinkSpec::between, list_of(name()), "the two memories")
///         .optional("bandwidth", &LinkSpec::bandwidth, quantity<ByteRate>(Unlimited::allowed), "...")
///         .optional("latency", &LinkSpec::latency, quantity<Time>(), "default 0 s")
///         .format();
///   }
///
///   LinkSpec spec = read(link_format(), node, diagnostics).value_or(LinkSpec{});
///
/// Reading reports every error of the node (unknown keys with the nearest known one, repeated keys,
/// wrong kinds, units, ranges) and goes on; the JSON Schema that editors use is generated from the
/// same description (`json_schema`), so the two cannot disagree.
#pragma once

#include "base/document.hpp"
#include "base/quantity_text.hpp"
#include "base/record_reader.hpp"
#include "base/shape.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace plimsoll {

/// How a T is written. `read` returns nothing after reporting why.
template <class T>
struct Format {
  std::function<std::optional<T>(const Node&, Diagnostics&)> read;
  Shape shape;
};

enum class Unlimited { refused, allowed };

/// --- scalars -------------------------------------------------------------------------------
/// A quantity with its unit.
template <class T>
[[nodiscard]] Format<T> quantity(Unlimited unlimited = Unlimited::refused);
/// An efficiency or share: 0.82 or "82 %", in (0, 1]; stored as parts per billion.
[[nodiscard]] Format<Ratio> efficiency();
/// A share that may exceed one: 0.5, "10 %", above one only with `%`; not negative.
[[nodiscard]] Format<Ratio> fraction();
[[nodiscard]] Format<std::int64_t> integer(std::int64_t minimum, std::int64_t maximum);
[[nodiscard]] Format<bool> boolean();
/// Any text, at most 64 KiB.
[[nodiscard]] Format<std::string> text();
/// A name: letters, digits, `_ - . /`, at most 200 characters.
[[nodiscard]] Format<std::string> name();

/// One of a few words, mapped to values.
template <class T>
[[nodiscard]] Format<T> one_of(std::vector<std::pair<std::string, T>> words);

/// --- compounds -----------------------------------------------------------------------------
template <class T>
[[nodiscard]] Format<std::vector<T>> list_of(Format<T> item, std::size_t least = 0,
                                             std::size_t most = 4'000'000);

/// A value together with the place where it was written, for checks across fields.
template <class T>
struct Located {
  T value{};
  Location where;
};
template <class T>
[[nodiscard]] Format<Located<T>> located(Format<T> inner);

/// A mapping of names to values, in the order of the file.
template <class T>
[[nodiscard]] Format<std::vector<std::pair<Located<std::string>, T>>> map_of(Format<T> value);

/// The node itself, unread: for parts that are read later, when it is known what they are.
[[nodiscard]] Format<Node> raw();

/// `inner`, and a check of the node, which is made whether it could be read or not.
template <class T>
[[nodiscard]] Format<T> checked(Format<T> inner,
                                std::function<void(const Node&, Diagnostics&)> check);

/// Passes a value of `inner` through `convert`.
template <class T, class U>
[[nodiscard]] Format<U> mapped(Format<T> inner, std::function<U(T)> convert);

/// The first format if the node is of its kind (scalar, list or mapping), else the second.
template <class T>
[[nodiscard]] Format<T> either(Format<T> first, Format<T> second);

/// A mapping with known keys. A field is an `M T::*` with a Format<M>, or a std::optional<M> T::*.
template <class T>
class Record {
 public:
  Record(std::string_view title, std::string_view text);

  template <class M>
  Record& required(std::string_view key, M T::*member, Format<M> format, std::string_view text);
  template <class M>
  Record& optional(std::string_view key, M T::*member, Format<M> format, std::string_view text);
  template <class M>
  Record& optional(std::string_view key, std::optional<M> T::*member, Format<M> format,
                   std::string_view text);
  /// An element of T, an array of std::optional<M>.
  template <class M>
  Record& element(std::string_view key, std::size_t index, Format<M> format, std::string_view text);
  /// Keeps the place of the whole record in `member`.
  Record& where(Location T::*member);
  /// A check across the fields `keys`. It runs even if other fields could not be read: all that it
  /// needs is that every one of `keys` was, or was left out rather than misspelt.
  Record& check(std::vector<std::string> keys,
                std::function<void(T&, const Node&, Diagnostics&)> check);

  [[nodiscard]] Format<T> format() const;

 private:
  detail::RecordReader reader_;
};

}  // namespace plimsoll

#include "base/format_impl.hpp"
