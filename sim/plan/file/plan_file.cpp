#include "plan/file/plan_file.hpp"

#include "base/document_scan.hpp"
#include "base/whole_file.hpp"
#include "plan/file/plan_message.hpp"

#include <algorithm>
#include <cassert>
#include <plan/plan.pb.h>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wire_format_lite.h>

namespace plimsoll {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

[[noreturn]] void refuse(const std::string& origin, std::string message) {
  refuse(Location{origin, 0, 0}, std::move(message));
}

/// The messages and strings of an encoded message, before anything is made of them: two bytes in a
/// file may become hundreds in memory. Counts up to the first byte that makes no sense; the parser
/// will find it, too.
class PartCount {
 public:
  explicit PartCount(CodedInputStream& in) : in_(in) {}

  /// False once there are too many.
  bool count(const Descriptor& message) {
    while (const std::uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* field =
          message.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const bool is_message =
          field != nullptr && field->message_type() != nullptr &&
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (is_message || (field != nullptr && field->type() == FieldDescriptor::TYPE_STRING))
        ++parts_;
      if (parts_ > kMaxPlanParts) return false;
      if (is_message ? !count_inside(*field->message_type())
                     : !WireFormatLite::SkipField(&in_, tag))
        return parts_ <= kMaxPlanParts;
    }
    return true;
  }

 private:
  bool count_inside(const Descriptor& message) {
    std::uint32_t length = 0;
    if (!in_.ReadVarint32(&length)) return false;
    const auto limit = in_.PushLimit(static_cast<int>(std::min(length, 0x7FFFFFFFu)));
    const bool good = count(message);
    in_.PopLimit(limit);
    return good;
  }

  CodedInputStream& in_;
  std::size_t parts_ = 0;
};

void parse_binary(std::string_view bytes, const std::string& origin, plan::v1::Plan& message) {
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  if (!PartCount(in).count(*plan::v1::Plan::descriptor()))
    refuse(origin, fmt::format("has more than {} parts", kMaxPlanParts));
  const google::protobuf::LogSilencer silent;  // what is wrong is not for standard error
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    refuse(origin, "is not a plan in the binary form of plan.proto, or is cut off");
  const std::size_t size = message.ByteSizeLong();
  message.DiscardUnknownFields();
  if (message.ByteSizeLong() != size)
    refuse(origin, "has fields that plan.proto does not have: not a plan, or a newer one");
}

/// protobuf begins with the part: "(steps[0].lane): invalid value".
std::string part_in(std::string_view words) {
  const std::size_t open = words.find('('), close = words.find("):");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(words.substr(open + 1, close - open - 1));
}

void parse_json(std::string_view text, const std::string& origin, plan::v1::Plan& message) {
  scan_plan_json(text, origin);
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), &message);
  if (status.ok()) return;
  const std::string_view words(status.message().data(), status.message().size());
  const std::string part = part_in(words);
  refuse(places_in_plan_json(text, origin, {part}).at(part),
         fmt::format("is not a plan in the JSON form of plan.proto: {}", excerpt(words)));
}

/// Most plans have nothing wrong: what is asked for a place is looked up in the text once all is
/// known.
Plan decode_json(std::string_view text, const plan::v1::Plan& message, const std::string& origin,
                 const Workload& workload, const Platform& platform) {
  std::set<std::string> parts;
  try {
    const auto note = [&](const std::string& part) {
      parts.insert(part);
      return Location{origin, 1, 1};
    };
    return decode_plan(message, note, workload, platform);
  } catch (const InputError&) {
    const auto places = places_in_plan_json(text, origin, parts);
    return decode_plan(
        message, [&](const std::string& part) { return places.at(part); }, workload, platform);
  }
}

std::string json_of(const plan::v1::Plan& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  [[maybe_unused]] const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  assert(status.ok());
  return text;
}

PlanForm form_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".json") return PlanForm::json;
  if (ending == ".pb" || ending == ".bin") return PlanForm::binary;
  refuse(path.string(), "a plan is a file `*.json`, `*.pb` or `*.bin`");
}

}  // namespace

std::string to_bytes(const Plan& plan, PlanForm form, const Workload& workload,
                     const Platform& platform) {
  plan::v1::Plan message;
  encode_plan(plan, workload, platform, message);
  return form == PlanForm::json ? json_of(message) : message.SerializeAsString();
}

Plan parse_plan(std::string_view bytes, PlanForm form, const std::string& origin,
                const Workload& workload, const Platform& platform) {
  if (bytes.size() > kMaxPlanBytes)
    refuse(origin, fmt::format("has {} bytes; plans of more than {} bytes are not read",
                               bytes.size(), kMaxPlanBytes));
  if (bytes.empty()) refuse(origin, "is empty, expected a plan");
  plan::v1::Plan message;
  if (form == PlanForm::json) {
    parse_json(bytes, origin, message);
    return decode_json(bytes, message, origin, workload, platform);
  }
  parse_binary(bytes, origin, message);
  return decode_plan(
      message,
      [&](const std::string&) {
        return Location{origin, 0, 0};
      },
      workload, platform);
}

void write_plan(const Plan& plan, const Workload& workload, const Platform& platform,
                const std::filesystem::path& path) {
  write_whole_file(path, to_bytes(plan, form_of(path), workload, platform));
}

Plan read_plan(const std::filesystem::path& path, const Workload& workload,
               const Platform& platform) {
  const PlanForm form = form_of(path);
  return parse_plan(read_whole_file(path, kMaxPlanBytes, "plans"), form, path.string(), workload,
                    platform);
}

}  // namespace plimsoll
