#include "workload/onnx/onnx_sieve.hpp"

#include "workload/onnx.pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace plimsoll {
namespace {

namespace pb = google::protobuf;
using pb::internal::WireFormatLite;

constexpr std::size_t kMaxGraphBytes = std::size_t{64} << 20;
constexpr std::uint32_t kMaxLength = 2'147'483'647;

enum class Message : std::uint8_t { model, graph, node, attribute, tensor };
enum class Action : std::uint8_t { skip, copy, copy_if_small, enter };

struct Choice {
  Message message;
  int field;
  Action action;
  Message entered = Message::tensor;
};

/// What is copied of each message; all else is skipped.
constexpr Choice kChoices[] = {
    {Message::model, onnx::ModelProto::kIrVersionFieldNumber, Action::copy},
    {Message::model, onnx::ModelProto::kProducerNameFieldNumber, Action::copy_if_small},
    {Message::model, onnx::ModelProto::kProducerVersionFieldNumber, Action::copy_if_small},
    {Message::model, onnx::ModelProto::kOpsetImportFieldNumber, Action::copy},
    {Message::model, onnx::ModelProto::kGraphFieldNumber, Action::enter, Message::graph},
    {Message::graph, onnx::GraphProto::kNodeFieldNumber, Action::enter, Message::node},
    {Message::graph, onnx::GraphProto::kInitializerFieldNumber, Action::enter, Message::tensor},
    {Message::graph, onnx::GraphProto::kInputFieldNumber, Action::copy},
    {Message::graph, onnx::GraphProto::kOutputFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kInputFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kOutputFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kNameFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kOpTypeFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kDomainFieldNumber, Action::copy},
    {Message::node, onnx::NodeProto::kAttributeFieldNumber, Action::enter, Message::attribute},
    {Message::attribute, onnx::AttributeProto::kNameFieldNumber, Action::copy},
    {Message::attribute, onnx::AttributeProto::kTypeFieldNumber, Action::copy},
    {Message::attribute, onnx::AttributeProto::kFFieldNumber, Action::copy},
    {Message::attribute, onnx::AttributeProto::kIFieldNumber, Action::copy},
    {Message::attribute, onnx::AttributeProto::kSFieldNumber, Action::copy_if_small},
    {Message::attribute, onnx::AttributeProto::kFloatsFieldNumber, Action::copy_if_small},
    {Message::attribute, onnx::AttributeProto::kIntsFieldNumber, Action::copy_if_small},
    {Message::attribute, onnx::AttributeProto::kTFieldNumber, Action::enter, Message::tensor},
    {Message::tensor, onnx::TensorProto::kDimsFieldNumber, Action::copy},
    {Message::tensor, onnx::TensorProto::kDataTypeFieldNumber, Action::copy},
    {Message::tensor, onnx::TensorProto::kNameFieldNumber, Action::copy},
    {Message::tensor, onnx::TensorProto::kDataLocationFieldNumber, Action::copy},
    {Message::tensor, onnx::TensorProto::kRawDataFieldNumber, Action::copy_if_small},
    {Message::tensor, onnx::TensorProto::kFloatDataFieldNumber, Action::copy_if_small},
    {Message::tensor, onnx::TensorProto::kInt32DataFieldNumber, Action::copy_if_small},
    {Message::tensor, onnx::TensorProto::kInt64DataFieldNumber, Action::copy_if_small},
    {Message::tensor, onnx::TensorProto::kDoubleDataFieldNumber, Action::copy_if_small},
};

/// Copies a model without what is not needed.
class Sieve {
 public:
  explicit Sieve(pb::io::CodedInputStream& input) : input_(input) {}

  /// False for bytes that are no message.
  bool run(std::string& output) { return copy(Message::model, output); }
  [[nodiscard]] bool is_full() const { return copied_ > kMaxGraphBytes; }

 private:
  bool copy(Message message, std::string& output) {
    pb::io::StringOutputStream stream(&output);
    pb::io::CodedOutputStream coded(&stream);
    while (const std::uint32_t tag = input_.ReadTag()) {
      if (!copy_field(message, tag, coded) || is_full()) return false;
    }
    return input_.ConsumedEntireMessage();
  }

  bool copy_field(Message message, std::uint32_t tag, pb::io::CodedOutputStream& output) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    for (const Choice& choice : kChoices) {
      if (choice.message != message || choice.field != field) continue;
      if (choice.action == Action::enter) return enter(choice.entered, tag, output);
      const int before = output.ByteCount();
      const bool good = choice.action == Action::copy_if_small && has_length(tag)
                            ? copy_small(tag, output)
                            : WireFormatLite::SkipField(&input_, tag, &output);
      copied_ += static_cast<std::size_t>(output.ByteCount() - before);
      return good;
    }
    return WireFormatLite::SkipField(&input_, tag);
  }

  static bool has_length(std::uint32_t tag) {
    return WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  }

  bool copy_small(std::uint32_t tag, pb::io::CodedOutputStream& output) {
    std::uint32_t length = 0;
    if (!input_.ReadVarint32(&length) || length > kMaxLength) return false;
    if (length > kMaxOnnxData) return input_.Skip(static_cast<int>(length));
    std::string data;
    if (!input_.ReadString(&data, static_cast<int>(length))) return false;
    write(tag, data, output);
    return true;
  }

  void write(std::uint32_t tag, const std::string& data, pb::io::CodedOutputStream& output) {
    output.WriteTag(tag);
    output.WriteVarint32(static_cast<std::uint32_t>(data.size()));
    output.WriteString(data);
  }

  bool enter(Message message, std::uint32_t tag, pb::io::CodedOutputStream& output) {
    std::uint32_t length = 0;
    if (!has_length(tag) || !input_.ReadVarint32(&length) || length > kMaxLength) return false;
    const auto limit = input_.PushLimit(static_cast<int>(length));
    std::string inner;
    if (!copy(message, inner) || input_.BytesUntilLimit() != 0) return false;
    input_.PopLimit(limit);
    copied_ += 10;
    write(tag, inner, output);
    return true;
  }

  pb::io::CodedInputStream& input_;
  std::size_t copied_ = 0;
};

}  // namespace

SievedOnnx sieve_onnx(pb::io::ZeroCopyInputStream& stream) {
  pb::io::CodedInputStream coded(&stream);
  Sieve sieve(coded);
  SievedOnnx sieved;
  sieved.is_message = sieve.run(sieved.graph);
  sieved.is_full = sieve.is_full();
  sieved.consumed = coded.CurrentPosition();
  return sieved;
}

}  // namespace plimsoll
