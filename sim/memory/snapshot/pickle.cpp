#include "memory/snapshot/pickle.hpp"

#include "base/diagnostic.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>

namespace plimsoll {

// --- what was read -----------------------------------------------------------------------------

const PickleValue* Pickle::find(const PickleValue& dictionary, std::string_view key) const {
  const std::span<const std::uint32_t> entries = items(dictionary);
  for (std::size_t e = entries.size(); e >= 2; e -= 2) {
    const PickleValue& it = values_[entries[e - 2]];
    if (it.kind == PickleKind::text && text(it) == key) return &values_[entries[e - 1]];
  }
  return nullptr;
}

std::string Pickle::describe(const PickleValue& value) const {
  constexpr std::size_t kMostShown = 60;
  switch (value.kind) {
    case PickleKind::none:
      return "nothing";
    case PickleKind::boolean:
      return value.integer != 0 ? "`True`" : "`False`";
    case PickleKind::integer:
      return fmt::format("`{}`", value.integer);
    case PickleKind::real:
      return fmt::format("`{}`", value.real);
    case PickleKind::text:
      if (value.size > kMostShown) return fmt::format("a text of {} bytes", value.size);
      return fmt::format("`{}`", text(value));
    case PickleKind::list:
      return "a list";
    case PickleKind::tuple:
      return "a tuple";
    case PickleKind::dictionary:
      return "a dictionary";
  }
  return "";
}

// --- reading -----------------------------------------------------------------------------------

class PickleReader {
 public:
  PickleReader(std::string bytes, const std::string& origin, const PickleLimits& limits)
      : origin_(origin), limits_(limits) {
    pickle_.bytes_ = std::move(bytes);
  }

  Pickle run() {
    read_protocol();
    while (!step()) {
    }
    if (at_ != pickle_.bytes_.size())
      fail(at_, "found bytes behind the end of the pickle, expected none");
    return std::move(pickle_);
  }

 private:
  static constexpr std::uint32_t kNotThere = UINT32_MAX;
  enum Opcode : std::uint8_t {
    kProto = 0x80,
    kTuple1 = 0x85,
    kTuple2 = 0x86,
    kTuple3 = 0x87,
    kNewTrue = 0x88,
    kNewFalse = 0x89,
    kLong1 = 0x8a,
    kShortBinUnicode = 0x8c,
    kMemoize = 0x94,
    kFrame = 0x95
  };

  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    Diagnostics diagnostics;
    diagnostics.error({origin_}, fmt::format("byte {}: {}", at, what));
    throw InputError({diagnostics.all().begin(), diagnostics.all().end()});
  }

  void read_protocol() {
    if (pickle_.bytes_.empty() || byte(0) != kProto)
      fail(0, "found another beginning than that of a pickle of protocol 2 to 5, the byte 0x80");
    at_ = 1;
    const std::uint64_t protocol = number(1, "the protocol");
    if (protocol < 2 || protocol > 5)
      fail(1, fmt::format("found protocol {}, expected one from 2 to 5", protocol));
  }

  [[nodiscard]] std::uint8_t byte(std::size_t at) const {
    return static_cast<std::uint8_t>(pickle_.bytes_[at]);
  }

  /// `size` bytes that follow, of `what`.
  std::size_t take(std::uint64_t size, const char* what) {
    if (size > pickle_.bytes_.size() - at_)
      fail(at_, fmt::format("found the end of the file, expected {} byte{} of {}", size,
                            size == 1 ? "" : "s", what));
    const std::size_t begin = at_;
    at_ += static_cast<std::size_t>(size);
    return begin;
  }

  std::uint64_t number(unsigned size, const char* what) {
    const std::size_t begin = take(size, what);
    std::uint64_t value = 0;
    for (unsigned b = 0; b < size; ++b) value |= std::uint64_t{byte(begin + b)} << (8 * b);
    return value;
  }

  // --- values

  std::uint32_t add(const PickleValue& value) {
    if (pickle_.values_.size() >= limits_.values)
      fail(opcode_at_, fmt::format("found more than {} values", limits_.values));
    pickle_.values_.push_back(value);
    return static_cast<std::uint32_t>(pickle_.values_.size() - 1);
  }
  void push(PickleValue value) {
    value.at = opcode_at_;
    stack_.push_back(add(value));
  }
  void push_integer(std::int64_t value) { push({.kind = PickleKind::integer, .integer = value}); }
  void push_text(unsigned width) {
    const std::uint64_t size = number(width, "the length of a text");
    const std::size_t begin = take(size, "a text");
    for (std::size_t c = begin; c < at_;) {
      const std::size_t length = utf8_length(std::string_view(pickle_.bytes_).substr(c, at_ - c));
      if (length == 0) fail(c, "found a byte that is not UTF-8 in a text");
      c += length;
    }
    push({.kind = PickleKind::text, .integer = static_cast<std::int64_t>(begin), .size = size});
  }
  void push_long() {
    const auto size = static_cast<unsigned>(number(1, "the length of a number"));
    if (size > 8)
      fail(opcode_at_, fmt::format("found a number of {} bytes, expected at most 8", size));
    std::uint64_t value = number(size, "a number");
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0)
      value |= ~std::uint64_t{0} << (8 * size);
    push_integer(static_cast<std::int64_t>(value));
  }
  void push_real() {
    const std::size_t begin = take(8, "a number");
    std::uint64_t bits = 0;
    for (std::size_t b = 0; b < 8; ++b) bits = bits << 8 | byte(begin + b);
    push({.kind = PickleKind::real, .real = std::bit_cast<double>(bits)});
  }
  void push_compound(PickleKind kind, std::span<const std::uint32_t> items) {
    const auto list = static_cast<std::int64_t>(pickle_.items_.size());
    pickle_.items_.emplace_back(items.begin(), items.end());
    push({.kind = kind, .integer = list});
  }

  // --- the stack

  /// The values that no open mark is before.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  /// The values on top, for one opcode; they must lie above the last mark.
  std::span<const std::uint32_t> top(std::size_t count) const {
    if (stack_.size() - floor() < count)
      fail(opcode_at_, fmt::format("found {} values for an opcode, expected {}",
                                   stack_.size() - floor(), count));
    return std::span(stack_).last(count);
  }
  void open_mark() {
    if (marks_.size() >= limits_.depth)
      fail(opcode_at_, fmt::format("found more than {} levels", limits_.depth));
    marks_.push_back(stack_.size());
  }
  /// What lies above the last mark, which is closed: `used_` holds it.
  std::span<const std::uint32_t> close_mark() {
    if (marks_.empty()) fail(opcode_at_, "found the end of a list, expected its beginning before");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    used_.assign(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return used_;
  }

  void make(PickleKind kind) {
    const std::span<const std::uint32_t> items = close_mark();
    if (kind == PickleKind::dictionary) require_pairs(items);
    push_compound(kind, items);
  }
  void make_tuple(std::size_t count) {
    const std::span<const std::uint32_t> items = top(count);
    used_.assign(items.begin(), items.end());
    stack_.resize(stack_.size() - count);
    push_compound(PickleKind::tuple, used_);
  }
  void require_pairs(std::span<const std::uint32_t> items) const {
    if (items.size() % 2 != 0) fail(opcode_at_, "found a key without a value");
  }

  /// Adds values to the compound value below them.
  void extend(PickleKind kind, std::span<const std::uint32_t> items) {
    const PickleValue& target = pickle_.values_[top(1).front()];
    if (target.kind != kind)
      fail(opcode_at_, fmt::format("found {}, expected {} to add to", pickle_.describe(target),
                                   kind == PickleKind::list ? "a list" : "a dictionary"));
    auto& there = pickle_.items_[static_cast<std::size_t>(target.integer)];
    added_ += items.size();
    if (added_ > limits_.values)
      fail(opcode_at_, fmt::format("found more than {} values in lists", limits_.values));
    there.insert(there.end(), items.begin(), items.end());
  }
  void extend_by_marked(PickleKind kind) {
    const std::span<const std::uint32_t> items = close_mark();
    if (kind == PickleKind::dictionary) require_pairs(items);
    extend(kind, items);
  }
  void extend_by_top(PickleKind kind, std::size_t count) {
    const std::span<const std::uint32_t> items = top(count + 1).last(count);
    used_.assign(items.begin(), items.end());
    stack_.resize(stack_.size() - count);
    extend(kind, used_);
  }

  // --- the memo

  void remember(std::uint64_t as) {
    if (as >= limits_.values) fail(opcode_at_, fmt::format("found entry {} of the memo", as));
    const auto entry = static_cast<std::size_t>(as);
    if (entry >= memo_.size()) memo_.resize(entry + 1, kNotThere);
    if (memo_[entry] == kNotThere) ++remembered_;
    memo_[entry] = top(1).front();
  }
  void recall(std::uint64_t as) {
    if (as >= memo_.size() || memo_[static_cast<std::size_t>(as)] == kNotThere)
      fail(opcode_at_, fmt::format("found entry {} of the memo, which is empty", as));
    if (stack_.size() >= limits_.values)
      fail(opcode_at_, fmt::format("found more than {} values", limits_.values));
    stack_.push_back(memo_[static_cast<std::size_t>(as)]);
  }

  // --- opcodes

  /// One opcode; true where it was the last.
  bool step() {
    opcode_at_ = take(1, "an opcode");
    const std::uint8_t opcode = byte(opcode_at_);
    if (opcode == '.') return stop();
    if (!step_scalar(opcode) && !step_compound(opcode) && !step_memo(opcode))
      fail(opcode_at_, fmt::format("found opcode 0x{:02x}{}, expected one of plain data", opcode,
                                   opcode > 0x20 && opcode < 0x7f
                                       ? fmt::format(" (`{}`)", static_cast<char>(opcode))
                                       : ""));
    return false;
  }

  bool step_scalar(std::uint8_t opcode) {
    switch (opcode) {
      case 'N':
        return push({}), true;
      case kNewTrue:
      case kNewFalse:
        return push({.kind = PickleKind::boolean, .integer = opcode == kNewTrue}), true;
      case 'J':
        return push_integer(static_cast<std::int32_t>(number(4, "a number"))), true;
      case 'K':
        return push_integer(static_cast<std::int64_t>(number(1, "a number"))), true;
      case 'M':
        return push_integer(static_cast<std::int64_t>(number(2, "a number"))), true;
      case kLong1:
        return push_long(), true;
      case 'G':
        return push_real(), true;
      case kShortBinUnicode:
        return push_text(1), true;
      case 'X':
        return push_text(4), true;
      default:
        return false;
    }
  }

  bool step_compound(std::uint8_t opcode) {
    switch (opcode) {
      case '}':
        return push_compound(PickleKind::dictionary, {}), true;
      case ']':
        return push_compound(PickleKind::list, {}), true;
      case ')':
        return push_compound(PickleKind::tuple, {}), true;
      case '(':
        return open_mark(), true;
      case 'd':
        return make(PickleKind::dictionary), true;
      case 'l':
        return make(PickleKind::list), true;
      case 't':
        return make(PickleKind::tuple), true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return make_tuple(opcode - kTuple1 + 1u), true;
      case 's':
        return extend_by_top(PickleKind::dictionary, 2), true;
      case 'a':
        return extend_by_top(PickleKind::list, 1), true;
      case 'u':
        return extend_by_marked(PickleKind::dictionary), true;
      case 'e':
        return extend_by_marked(PickleKind::list), true;
      default:
        return false;
    }
  }

  bool step_memo(std::uint8_t opcode) {
    switch (opcode) {
      case kFrame:  // a hint for who reads from a stream
        return number(8, "the length of a frame"), true;
      case kMemoize:
        return remember(remembered_), true;
      case 'q':
        return remember(number(1, "an entry of the memo")), true;
      case 'r':
        return remember(number(4, "an entry of the memo")), true;
      case 'h':
        return recall(number(1, "an entry of the memo")), true;
      case 'j':
        return recall(number(4, "an entry of the memo")), true;
      default:
        return false;
    }
  }

  bool stop() {
    if (!marks_.empty()) fail(opcode_at_, "found the end of the pickle within a list");
    if (stack_.size() != 1)
      fail(opcode_at_, fmt::format("found {} values at the end, expected one", stack_.size()));
    pickle_.root_ = stack_.front();
    return true;
  }

  std::string origin_;
  PickleLimits limits_;
  Pickle pickle_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::vector<std::uint32_t> stack_, used_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint32_t> memo_;
  std::size_t remembered_ = 0;  ///< entries of memo_ that are there
  std::size_t added_ = 0;
};

Pickle parse_pickle(std::string bytes, const std::string& origin, const PickleLimits& limits) {
  return PickleReader(std::move(bytes), origin, limits).run();
}

// --- writing -----------------------------------------------------------------------------------

namespace {

void append_bytes(std::string& out, std::uint64_t value, unsigned size) {
  for (unsigned b = 0; b < size; ++b) out += static_cast<char>(value >> (8 * b) & 0xff);
}

}  // namespace

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::begin_value() {
  if (open_.empty() || open_.back() == kDictionary) return;
  if (open_.back() == kBatch) {
    out_ += "e(";
    open_.back() = 0;
  }
  ++open_.back();
}

void PickleWriter::begin_list() {
  begin_value();
  out_ += "](";
  open_.push_back(0);
}

void PickleWriter::end_list() {
  out_ += 'e';
  open_.pop_back();
}

void PickleWriter::begin_dictionary() {
  begin_value();
  out_ += "}(";
  open_.push_back(kDictionary);
}

void PickleWriter::end_dictionary() {
  out_ += 'u';
  open_.pop_back();
}

void PickleWriter::none() {
  begin_value();
  out_ += 'N';
}

void PickleWriter::integer(std::int64_t value) {
  begin_value();
  const auto bits = static_cast<std::uint64_t>(value);
  if (0 <= value && value < 0x100) {
    out_ += 'K';
    append_bytes(out_, bits, 1);
  } else if (0 <= value && value < 0x10000) {
    out_ += 'M';
    append_bytes(out_, bits, 2);
  } else if (INT32_MIN <= value && value <= INT32_MAX) {
    out_ += 'J';
    append_bytes(out_, bits, 4);
  } else {
    out_ += "\x8a\x08";
    append_bytes(out_, bits, 8);
  }
}

void PickleWriter::text(std::string_view utf8) {
  assert(utf8.size() <= UINT32_MAX);
  begin_value();
  out_ += 'X';
  append_bytes(out_, utf8.size(), 4);
  out_ += utf8;
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace plimsoll
