#include "base/diagnostic.hpp"
#include "base/document_scan.hpp"
#include "plan/file/plan_message.hpp"

#include <algorithm>
#include <plan/plan.pb.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

/// Follows the text along the descriptors of plan.proto. Kinds of values are left to protobuf.
class JsonScan : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonScan(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override {
    count_part();
    return value();
  }
  bool binary(binary_t&) override { return value(); }

  bool start_object(std::size_t) override {
    count_part();
    value();
    const Descriptor* message = plan::v1::Plan::descriptor();
    if (!frames_.empty()) {
      const FieldDescriptor* field = frames_.back().field;
      message = field == nullptr ? nullptr : field->message_type();
    }
    return push({message, nullptr, false, -1, {}});
  }
  bool start_array(std::size_t) override {
    value();
    const FieldDescriptor* field = frames_.empty() ? nullptr : frames_.back().field;
    return push({nullptr, field, true, -1, {}});
  }
  bool end_object() override { return pop(); }
  bool end_array() override { return pop(); }

  bool key(string_t& name) override {
    Frame& frame = frames_.back();
    frame.field = nullptr;
    if (frame.message == nullptr) return true;
    const FieldDescriptor* field = frame.message->FindFieldByName(name);
    if (field == nullptr) field = frame.message->FindFieldByCamelcaseName(name);
    if (field == nullptr) refuse_key(name, *frame.message);
    if (std::ranges::find(frame.seen, field) != frame.seen.end())
      refuse({origin_, 0, 0}, fmt::format("{}the key `{}` is repeated", path(), name));
    frame.seen.push_back(field);
    frame.field = field;
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
  };
  static constexpr std::size_t kMostDepth = 16;

  [[noreturn]] static void refuse(Location where, std::string message, std::string hint = {}) {
    throw InputError({{Severity::error, std::move(where), std::move(message), std::move(hint)}});
  }
  [[noreturn]] void refuse_key(const std::string& name, const Descriptor& message) const {
    std::vector<std::string> known;
    for (int i = 0; i < message.field_count(); ++i) known.push_back(message.field(i)->name());
    refuse({origin_, 0, 0}, fmt::format("{}unknown key `{}`", path(), excerpt(name)),
           did_you_mean(name, known));
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
    if (!frames_.empty()) ++frames_.back().item;
    return true;
  }
  void count_part() {
    if (++parts_ > kMaxPlanParts)
      refuse({origin_, 0, 0}, fmt::format("has more than {} parts", kMaxPlanParts));
  }
  bool push(Frame frame) {
    frames_.push_back(std::move(frame));
    if (frames_.size() > kMostDepth)
      refuse({origin_, 0, 0}, fmt::format("is nested deeper than {} levels", kMostDepth));
    return true;
  }
  bool pop() {
    frames_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& origin_;
  std::vector<Frame> frames_;
  std::size_t parts_ = 0;
};

}  // namespace

void scan_plan_json(std::string_view text, const std::string& origin) {
  JsonScan scan(text, origin);
  nlohmann::json::sax_parse(text, &scan);
}

}  // namespace plimsoll
