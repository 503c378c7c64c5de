#include "base/repeat.hpp"

#include <charconv>
#include <optional>
#include <utility>

namespace plimsoll {

class RepeatExpander {
 public:
  RepeatExpander(const DocumentLimits& limits, Diagnostics& diagnostics)
      : limits_(limits), diagnostics_(diagnostics) {}

  /// Expands the lists at or below a node that no repeat encloses.
  void expand_in(Node& node) {
    if (!holds_repeat(node)) return;
    if (std::optional<Node> expanded = copy(node)) node = std::move(*expanded);
  }

 private:
  static constexpr std::string_view kRepeat = "repeat";
  static constexpr std::string_view kItems = "items";

  static bool is_repeat(const Node& item) {
    return item.is_mapping() && item.find(kRepeat) != nullptr;
  }

  static bool holds_repeat(const Node& node) {
    for (const Node& item : node.items_)
      if (is_repeat(item) || holds_repeat(item)) return true;
    for (const Node::Entry& entry : node.entries_)
      if (holds_repeat(entry.value)) return true;
    return false;
  }

  /// A copy with the numbers of the enclosing repeats put in; nothing once the limits are passed.
  std::optional<Node> copy(const Node& node) {
    if (!count(node)) return std::nullopt;
    Node result;
    result.kind_ = node.kind_;
    result.quoted_ = node.quoted_;
    result.line_ = node.line_;
    result.column_ = node.column_;
    result.origin_ = node.origin_;
    result.scalar_ = numbered(node.scalar_);
    result.entries_.reserve(node.entries_.size());
    for (const Node::Entry& entry : node.entries_) {
      std::optional<Node> value = copy(entry.value);
      if (!value) return std::nullopt;
      result.entries_.push_back({entry.key, std::move(*value)});
    }
    if (!append_items(node.items_, result.items_)) return std::nullopt;
    return result;
  }

  /// False once the limits are passed.
  bool append_items(const std::vector<Node>& items, std::vector<Node>& result) {
    for (const Node& item : items) {
      if (is_repeat(item)) {
        if (!append_repeat(item, result)) return false;
        continue;
      }
      std::optional<Node> value = copy(item);
      if (!value) return false;
      result.push_back(std::move(*value));
    }
    return true;
  }

  bool append_repeat(const Node& repeat, std::vector<Node>& result) {
    const std::optional<std::int64_t> times = times_of(repeat);
    const Node* items = items_of(repeat);
    if (!times || items == nullptr) return true;
    // Refused before its items take memory, which they would by the gigabyte.
    const std::size_t each = values_in(*items), left = limits_.nodes - nodes_;
    if (static_cast<std::uint64_t>(*times) > left / each) return refuse(repeat);
    numbers_.push_back(0);
    bool within_limits = true;
    for (std::int64_t i = 1; i <= *times && within_limits; ++i) {
      numbers_.back() = i;
      // An iteration counts even where its items are empty, so that no number of them is free.
      within_limits = count(repeat) && append_items(items->items_, result);
    }
    numbers_.pop_back();
    return within_limits;
  }

  /// Values that a copy has at least: a repeat in it counts as one.
  static std::size_t values_in(const Node& node) {
    std::size_t values = 1;
    if (is_repeat(node)) return values;
    for (const Node& item : node.items_) values += values_in(item);
    for (const Node::Entry& entry : node.entries_) values += values_in(entry.value);
    return values;
  }

  std::optional<std::int64_t> times_of(const Node& repeat) {
    const Node& times = *repeat.find(kRepeat);
    std::int64_t number = 0;
    const char* end = times.scalar_.data() + times.scalar_.size();
    const auto [stop, error] = std::from_chars(times.scalar_.data(), end, number);
    if (times.is_scalar() && error == std::errc{} && stop == end && number >= 1) return number;
    diagnostics_.error(times.where(), "found " + times.describe() +
                                          ", expected how often to repeat: a whole number from 1");
    return std::nullopt;
  }

  const Node* items_of(const Node& repeat) {
    const std::string known[] = {std::string(kRepeat), std::string(kItems)};
    for (const Node::Entry& entry : repeat.entries_)
      if (entry.key.scalar_ != kRepeat && entry.key.scalar_ != kItems)
        diagnostics_.error(
            entry.key.where(),
            "unknown key " + entry.key.describe() + ", a repeat has only `repeat` and `items`",
            did_you_mean(entry.key.scalar_, known));
    const Node* items = repeat.find(kItems);
    if (items != nullptr && items->is_sequence()) return items;
    if (items == nullptr)
      diagnostics_.error(repeat.where(), "a repeat without `items`, expected a list of them");
    else
      diagnostics_.error(items->where(),
                         "found " + items->describe() + ", expected the list of items to repeat");
    return nullptr;
  }

  bool count(const Node& node) {
    ++nodes_;
    bytes_ += node.scalar_.size();
    return (nodes_ <= limits_.nodes && bytes_ <= 2 * limits_.bytes) || refuse(node);
  }

  bool refuse(const Node& node) {
    diagnostics_.error(node.where(), "repeats make more than " + std::to_string(limits_.nodes) +
                                         " values or " + std::to_string(2 * limits_.bytes) +
                                         " bytes of text");
    return false;
  }

  [[nodiscard]] std::string numbered(const std::string& text) const {
    if (numbers_.empty() || text.find('{') == std::string::npos) return text;
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool braces = text[at] == '{' && at + 2 < text.size() && text[at + 2] == '}';
      const std::size_t outwards =
          braces && text[at + 1] >= 'i' ? static_cast<std::size_t>(text[at + 1] - 'i') : 3;
      if (outwards < 3 && outwards < numbers_.size()) {
        result += std::to_string(numbers_[numbers_.size() - 1 - outwards]);
        at += 2;
      } else {
        result += text[at];
      }
    }
    return result;
  }

  DocumentLimits limits_;
  Diagnostics& diagnostics_;
  std::vector<std::int64_t> numbers_;  ///< of the repeats around, outermost first
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
};

void expand_repeats(Node& list, const DocumentLimits& limits, Diagnostics& diagnostics) {
  RepeatExpander(limits, diagnostics).expand_in(list);
}

}  // namespace plimsoll
