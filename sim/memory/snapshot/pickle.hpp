/// The part of Python's pickle format that is data: numbers, texts, lists, tuples, dictionaries.
///
/// Read are protocols 2 to 5 with the opcodes that such data takes; every other opcode is refused,
/// so that nothing is ever called or imported. Written is protocol 2.
///
/// A read file is a tree as a flat array of values. Values that a pickle shares are shared here, too;
/// one that contains itself is possible, and harmless to who looks only as deep as a format is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  dictionary
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::uint64_t at = 0;      ///< byte of the file at which it begins
  std::int64_t integer = 0;  ///< or 0, 1; of a text where it begins, of a compound one its list
  std::uint64_t size = 0;    ///< of a text, in bytes
  double real = 0;
};

struct PickleLimits {
  std::size_t values = 16'000'000;
  std::size_t depth = 1'000;  ///< marks that are open at one time
};

/// A pickle that was read. Of a dictionary the items are keys and values in turn.
class Pickle {
 public:
  [[nodiscard]] const PickleValue& root() const { return values_[root_]; }
  /// Of a list, a tuple or a dictionary: the numbers of its values.
  [[nodiscard]] std::span<const std::uint32_t> items(const PickleValue& value) const {
    return items_[static_cast<std::size_t>(value.integer)];
  }
  [[nodiscard]] const PickleValue& operator[](std::uint32_t value) const { return values_[value]; }
  [[nodiscard]] std::string_view text(const PickleValue& value) const {
    return std::string_view(bytes_).substr(static_cast<std::size_t>(value.integer), value.size);
  }
  /// The value under a key of a dictionary, the last of equal ones; or nullptr. O(keys).
  [[nodiscard]] const PickleValue* find(const PickleValue& dictionary, std::string_view key) const;
  /// "a list", "`12`": for messages.
  [[nodiscard]] std::string describe(const PickleValue& value) const;

 private:
  friend class PickleReader;
  std::string bytes_;
  std::vector<PickleValue> values_;
  std::vector<std::vector<std::uint32_t>> items_;
  std::uint32_t root_ = 0;
};

/// Throws InputError at `origin`, with the byte at which something else than expected was found.
/// O(bytes).
[[nodiscard]] Pickle parse_pickle(std::string bytes, const std::string& origin,
                                  const PickleLimits& limits = {});

/// Writes a pickle of protocol 2, value by value. Lists are appended to in batches, as Python does it:
/// the public viewer passes each batch as arguments of one call, which fails with 130,000.
///
///   PickleWriter w;
///   w.begin_dictionary();
///   w.text("sizes");
///   w.begin_list(); w.integer(1); w.integer(2); w.end_list();
///   w.end_dictionary();
///   std::string bytes = w.finish();
class PickleWriter {
 public:
  PickleWriter();
  void none();
  void integer(std::int64_t value);
  void text(std::string_view utf8);
  void begin_list();
  void end_list();
  /// Keys and values follow in turn.
  void begin_dictionary();
  void end_dictionary();
  [[nodiscard]] std::string finish();

  static constexpr std::size_t kBatch = 1000;

 private:
  static constexpr std::size_t kDictionary = SIZE_MAX;

  void begin_value();

  std::string out_;
  std::vector<std::size_t> open_;  ///< of lists the values in the last batch, or kDictionary
};

}  // namespace plimsoll
