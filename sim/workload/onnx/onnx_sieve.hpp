/// An ONNX file without its weights, and without all else that the importer does not read.
#pragma once

#include <cstdint>
#include <string>

namespace google::protobuf::io {
class ZeroCopyInputStream;
}  // namespace google::protobuf::io

namespace plimsoll {

/// The most bytes of numbers of one tensor that are copied.
inline constexpr std::int64_t kMaxOnnxData = 64 << 10;

struct SievedOnnx {
  std::string graph;          ///< a message of the same schema
  std::int64_t consumed = 0;  ///< bytes of the file
  bool is_message = false;    ///< false: the bytes are none, or are cut off
  bool is_full = false;       ///< what remains exceeds 64 MiB
};

/// Copies a ModelProto field by field; data of tensors above kMaxOnnxData is skipped in the stream.
/// O(bytes that are not skipped).
[[nodiscard]] SievedOnnx sieve_onnx(google::protobuf::io::ZeroCopyInputStream& stream);

}  // namespace plimsoll
