#include "base/diagnostic.hpp"
#include "base/document_scan.hpp"
#include "plan/file/plan_message.hpp"

#include <algorithm>
#include <iterator>
#include <plan/plan.pb.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

/// The text for nlohmann's parser, which tells `*reached` how far it has read.
class WatchedChars {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  WatchedChars(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  WatchedChars& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  WatchedChars operator++(int) {
    WatchedChars before = *this;
    ++*this;
    return before;
  }
  bool operator==(const WatchedChars& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// The parts of a plan that are asked for, as a tree of their steps: "steps", "[3]", "compute".
class WantedParts {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  WantedParts() = default;
  explicit WantedParts(const std::set<std::string>& parts) {
    for (const std::string& part : parts) ends_[part] = add(part);
  }

  [[nodiscard]] std::size_t step(std::size_t from, const std::string& name) const {
    if (from == kNone) return kNone;
    const auto found = nodes_[from].steps.find(name);
    return found == nodes_[from].steps.end() ? kNone : found->second;
  }
  [[nodiscard]] std::size_t item(std::size_t from, std::ptrdiff_t index) const {
    if (from == kNone || nodes_[from].steps.empty()) return kNone;
    return step(from, fmt::format("[{}]", index));
  }
  void found(std::size_t node, const Location& where) {
    if (node != kNone) nodes_[node].where = where;
  }

  [[nodiscard]] std::map<std::string, Location> places(const Location& whole) const {
    std::map<std::string, Location> places;
    for (const auto& [part, end] : ends_) {
      std::size_t node = end;
      while (node != 0 && nodes_[node].where.line == 0) node = nodes_[node].parent;
      places[part] = nodes_[node].where.line == 0 ? whole : nodes_[node].where;
    }
    return places;
  }

 private:
  struct Node {
    std::size_t parent = 0;
    Location where = {};
    std::map<std::string, std::size_t> steps = {};
  };

  /// The end of the path, made where it is new.
  std::size_t add(std::string_view part) {
    std::size_t node = 0;
    while (!part.empty()) {
      if (part.front() == '.') part.remove_prefix(1);
      const std::size_t end = std::min(part.find_first_of(".[", 1), part.size());
      const auto [step, is_new] =
          nodes_[node].steps.emplace(std::string(part.substr(0, end)), nodes_.size());
      const std::size_t next = step->second;
      if (is_new) nodes_.push_back({node});
      node = next;
      part.remove_prefix(std::min(end, part.size()));
    }
    return node;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::map<std::string, std::size_t> ends_;
};

/// Follows the text along the descriptors of plan.proto. Kinds of values are left to protobuf.
class JsonScan : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonScan(std::string_view text, const std::string& origin, WantedParts* wanted)
      : text_(text), origin_(origin), reached_(text.data()), wanted_(wanted) {}

  void run() {
    nlohmann::json::sax_parse(WatchedChars(text_.data(), &reached_),
                              WatchedChars(text_.data() + text_.size(), &reached_), this);
  }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override {
    const bool good = value();
    count_part();
    return good;
  }
  bool binary(binary_t&) override { return value(); }

  bool start_object(std::size_t) override {
    value();
    count_part();
    const Descriptor* message = plan::v1::Plan::descriptor();
    if (!frames_.empty()) {
      const FieldDescriptor* field = frames_.back().field;
      message = field == nullptr ? nullptr : field->message_type();
    }
    return push({message, nullptr, false, -1, {}, part_, WantedParts::kNone});
  }
  bool start_array(std::size_t) override {
    value();
    const FieldDescriptor* field = frames_.empty() ? nullptr : frames_.back().field;
    return push({nullptr, field, true, -1, {}, part_, WantedParts::kNone});
  }
  bool end_object() override { return pop(); }
  bool end_array() override { return pop(); }

  bool key(string_t& name) override {
    begin_token();
    Frame& frame = frames_.back();
    frame.field = nullptr;
    frame.part_of_key = WantedParts::kNone;
    if (frame.message == nullptr) return true;
    const FieldDescriptor* field = frame.message->FindFieldByName(name);
    if (field == nullptr) field = frame.message->FindFieldByCamelcaseName(name);
    if (field == nullptr) refuse_key(name, *frame.message);
    if (std::ranges::find(frame.seen, field) != frame.seen.end())
      refuse(place(), fmt::format("{}the key `{}` is repeated", path(), excerpt(name)));
    frame.seen.push_back(field);
    frame.field = field;
    if (wanted_ != nullptr) {
      frame.part_of_key = wanted_->step(frame.part, field->name());
      note(frame.part_of_key);
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, std::min(position, text_.size() + 1) - 1);
    const auto line_begin = before.rfind('\n') + 1;  // npos + 1 is the first line
    const Location where{origin_, static_cast<int>(std::ranges::count(before, '\n')) + 1,
                         static_cast<int>(before.size() - line_begin) + 1};
    if (before.size() == text_.size()) refuse(where, "the text ends in the middle of the plan");
    refuse(where, fmt::format("is not JSON from `{}` on", excerpt(text_.substr(before.size()))));
  }

 private:
  struct Frame {
    const Descriptor* message;     ///< of an object; nullptr where protobuf will refuse it
    const FieldDescriptor* field;  ///< of the last key, or of the list
    bool is_list;
    std::ptrdiff_t item;
    std::vector<const FieldDescriptor*> seen;
    std::size_t part;         ///< among the wanted ones
    std::size_t part_of_key;  ///< that of the last key
  };
  static constexpr std::size_t kMostDepth = 16;

  [[noreturn]] void refuse_key(const std::string& name, const Descriptor& message) {
    std::vector<std::string> known;
    for (int i = 0; i < message.field_count(); ++i) known.push_back(message.field(i)->name());
    refuse(place(), fmt::format("{}unknown key `{}`", path(), excerpt(name)),
           did_you_mean(name, known));
  }

  /// A key or value has been read: it begins behind the one before and what separates them. The
  /// parser looks one character beyond a number, which is such a one or ends a list.
  void begin_token() {
    begin_ = std::min(text_.find_first_not_of(" \t\r\n,:", end_), text_.size());
    end_ = static_cast<std::size_t>(reached_ - text_.data());
  }

  /// Of the last key or value. The places asked for come in the order of the text.
  [[nodiscard]] Location place() {
    for (; counted_ < begin_; ++counted_) {
      if (text_[counted_] != '\n') continue;
      ++line_;
      line_begin_ = counted_ + 1;
    }
    return {origin_, line_, static_cast<int>(begin_ - line_begin_) + 1};
  }

  void note(std::size_t part) {
    if (part != WantedParts::kNone) wanted_->found(part, place());
  }

  /// "steps[3].compute: ", or "" at the top.
  [[nodiscard]] std::string path() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < frames_.size(); ++i) {
      if (frames_[i].is_list) {
        text += fmt::format("[{}]", frames_[i].item);
      } else if (frames_[i].field != nullptr) {
        if (!text.empty()) text += '.';
        text += frames_[i].field->name();
      }
    }
    return text.empty() ? text : text + ": ";
  }

  bool value() {
    begin_token();
    part_ = 0;
    if (frames_.empty()) return true;
    Frame& frame = frames_.back();
    ++frame.item;
    part_ = frame.part_of_key;
    if (frame.is_list && wanted_ != nullptr) {
      part_ = wanted_->item(frame.part, frame.item);
      note(part_);
    }
    return true;
  }
  void count_part() {
    if (++parts_ > kMaxPlanParts)
      refuse(place(), fmt::format("has more than {} parts", kMaxPlanParts));
  }
  bool push(Frame frame) {
    frames_.push_back(std::move(frame));
    if (frames_.size() > kMostDepth)
      refuse(place(), fmt::format("is nested deeper than {} levels", kMostDepth));
    return true;
  }
  bool pop() {
    frames_.pop_back();
    end_ = static_cast<std::size_t>(reached_ - text_.data());
    return true;
  }

  std::string_view text_;
  const std::string& origin_;
  const char* reached_;
  WantedParts* wanted_;  ///< nullptr: nobody asks
  std::vector<Frame> frames_;
  std::size_t part_ = 0;  ///< of the last value, among the wanted ones
  std::size_t parts_ = 0;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t counted_ = 0, line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

void scan_plan_json(std::string_view text, const std::string& origin) {
  JsonScan(text, origin, nullptr).run();
}

std::map<std::string, Location> places_in_plan_json(std::string_view text,
                                                    const std::string& origin,
                                                    const std::set<std::string>& parts) {
  WantedParts wanted(parts);
  JsonScan(text, origin, &wanted).run();
  return wanted.places({origin, 1, 1});
}

}  // namespace plimsoll
