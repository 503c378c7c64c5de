#include "workload/onnx/onnx_file.hpp"

#include "workload/onnx.pb.h"
#include "workload/onnx/onnx_sieve.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <set>
#include <sys/stat.h>

#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace plimsoll {
namespace {

namespace pb = google::protobuf;

constexpr int kMaxParts = 200'000;
constexpr int kMaxTensorRank = 16;
constexpr std::size_t kMaxText = 1000;

[[noreturn]] void refuse(const std::string& origin, const std::string& message) {
  Diagnostics diagnostics;
  diagnostics.error({origin, 0, 0}, message);
  diagnostics.throw_if_errors();
  throw InputError({});
}

/// --- from messages to plain values ---------------------------------------------------------

OnnxType type_of(std::int32_t code) {
  switch (code) {
    case onnx::TensorProto::FLOAT:
      return OnnxType::fp32;
    case onnx::TensorProto::FLOAT16:
      return OnnxType::fp16;
    case onnx::TensorProto::BFLOAT16:
      return OnnxType::bf16;
    case onnx::TensorProto::DOUBLE:
      return OnnxType::fp64;
    case onnx::TensorProto::BOOL:
      return OnnxType::boolean;
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
      return OnnxType::integer;
    default:
      return OnnxType::other;
  }
}

/// The numbers in the raw bytes of a tensor, little endian as the format has them.
template <class T, class Number>
std::vector<Number> unpack(const std::string& raw) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<Number> numbers;
  for (std::size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    T number;
    std::memcpy(&number, raw.data() + at, sizeof(T));
    numbers.push_back(static_cast<Number>(number));
  }
  return numbers;
}

/// Those of a tensor: in its raw bytes, or in the field of its type.
template <class T, class Number, class Field>
std::vector<Number> numbers_of(const onnx::TensorProto& from, const Field& field) {
  if (!from.raw_data().empty()) return unpack<T, Number>(from.raw_data());
  std::vector<Number> numbers;
  for (const auto number : field) numbers.push_back(static_cast<Number>(number));
  return numbers;
}

/// A number of 16 bits: `exponent_bits` below the sign, the rest is the fraction.
double from_16_bits(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = (bits & 0x7FFF) >> fraction_bits;
  const int largest = (1 << exponent_bits) - 1, bias = largest / 2;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == largest)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

/// Raw bytes have two a number, the field one of its own.
std::vector<double> halves(const onnx::TensorProto& from, int exponent_bits) {
  const auto bits = numbers_of<std::uint16_t, std::uint16_t>(from, from.int32_data());
  std::vector<double> numbers;
  for (const std::uint16_t number : bits) numbers.push_back(from_16_bits(number, exponent_bits));
  return numbers;
}

void read_numbers(const onnx::TensorProto& from, OnnxTensor& tensor) {
  switch (from.data_type()) {
    case onnx::TensorProto::FLOAT:
      tensor.reals = numbers_of<float, double>(from, from.float_data());
      return;
    case onnx::TensorProto::DOUBLE:
      tensor.reals = numbers_of<double, double>(from, from.double_data());
      return;
    case onnx::TensorProto::FLOAT16:
      tensor.reals = halves(from, 5);
      return;
    case onnx::TensorProto::BFLOAT16:
      tensor.reals = halves(from, 8);
      return;
    case onnx::TensorProto::INT64:
      tensor.integers = numbers_of<std::int64_t, std::int64_t>(from, from.int64_data());
      return;
    case onnx::TensorProto::INT32:
      tensor.integers = numbers_of<std::int32_t, std::int64_t>(from, from.int32_data());
      return;
    case onnx::TensorProto::BOOL:
      tensor.integers = numbers_of<std::uint8_t, std::int64_t>(from, from.int32_data());
      return;
    default:
      return;
  }
}

/// Turns a parsed model into a graph; what is out of bounds ends in an InputError.
class Reader {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}

  OnnxGraph read(const onnx::ModelProto& model) {
    if (!model.has_graph()) refuse(origin_, "expected an ONNX model with a graph, found none");
    const onnx::GraphProto& from = model.graph();
    const std::string_view what = "nodes, inputs, outputs or initializers";
    for (const int count :
         {from.node_size(), from.initializer_size(), from.input_size(), from.output_size()})
      if (count > kMaxParts)
        refuse(origin_, "found " + std::to_string(count) + " " + std::string(what) +
                            ", expected at most " + std::to_string(kMaxParts));
    OnnxGraph graph;
    graph.where = {origin_, 0, 0};
    for (const onnx::OperatorSetIdProto& opset : model.opset_import())
      if (opset.domain().empty() || opset.domain() == "ai.onnx") graph.opset = opset.version();
    const std::string& version = model.producer_version();
    graph.is_of_pytorch = model.producer_name() == "pytorch";
    graph.is_of_pytorch_2 = graph.is_of_pytorch && !version.empty() && !version.starts_with("0.") &&
                            !version.starts_with("1.");
    std::set<std::string> stored;
    for (const onnx::TensorProto& tensor : from.initializer()) {
      graph.initializers.push_back({text(tensor.name()), read(tensor)});
      stored.insert(graph.initializers.back().name);
    }
    for (const onnx::ValueInfoProto& input : from.input())
      if (!stored.contains(input.name())) graph.inputs.push_back(read(input));
    for (const onnx::ValueInfoProto& output : from.output())
      graph.outputs.push_back(text(output.name()));
    for (const onnx::NodeProto& node : from.node()) graph.nodes.push_back(read(node));
    return graph;
  }

 private:
  [[nodiscard]] const std::string& text(const std::string& text) const {
    if (text.size() > kMaxText)
      refuse(origin_, "a name of " + std::to_string(text.size()) + " bytes, expected at most " +
                          std::to_string(kMaxText));
    return text;
  }

  void check_rank(int rank) const {
    if (rank > kMaxTensorRank)
      refuse(origin_, "a tensor of " + std::to_string(rank) + " dimensions, expected at most " +
                          std::to_string(kMaxTensorRank));
  }

  OnnxTensor read(const onnx::TensorProto& from) const {
    check_rank(from.dims_size());
    OnnxTensor tensor;
    tensor.dims = {from.dims().begin(), from.dims().end()};
    tensor.type = type_of(from.data_type());
    std::int64_t elements = 1;
    for (const std::int64_t dim : tensor.dims) {
      if (dim < 0) refuse(origin_, "tensor `" + from.name() + "` has a dimension below 0");
      if (elements <= kMaxOnnxData) elements *= std::min<std::int64_t>(dim, kMaxOnnxData + 1);
    }
    if (from.data_location() != onnx::TensorProto::EXTERNAL) read_numbers(from, tensor);
    const std::size_t found = tensor.integers.size() + tensor.reals.size();
    tensor.is_known = static_cast<std::int64_t>(found) == elements;
    if (!tensor.is_known) tensor.integers = {}, tensor.reals = {};
    return tensor;
  }

  OnnxInput read(const onnx::ValueInfoProto& from) const {
    OnnxInput input;
    input.name = text(from.name());
    if (!from.type().has_tensor_type()) return input;
    const onnx::TypeProto::Tensor& type = from.type().tensor_type();
    input.type = type_of(type.elem_type());
    if (!type.has_shape()) return input;
    check_rank(type.shape().dim_size());
    input.dims.emplace();
    for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      OnnxDimension read;
      if (dim.has_dim_value()) read.size = dim.dim_value();
      read.name = text(dim.dim_param());
      input.dims->push_back(std::move(read));
    }
    return input;
  }

  OnnxNode read(const onnx::NodeProto& from) const {
    OnnxNode node;
    node.name = text(from.name());
    node.kind = text(from.op_type());
    node.domain = text(from.domain());
    for (const std::string& input : from.input()) node.inputs.push_back(text(input));
    for (const std::string& output : from.output()) node.outputs.push_back(text(output));
    for (const onnx::AttributeProto& attribute : from.attribute())
      node.attributes.push_back(read(attribute));
    return node;
  }

  OnnxAttribute read(const onnx::AttributeProto& from) const {
    OnnxAttribute attribute;
    attribute.name = text(from.name());
    attribute.integer = from.i();
    attribute.real = from.f();
    attribute.text = from.s();
    attribute.integers = {from.ints().begin(), from.ints().end()};
    if (from.has_t()) attribute.tensor = read(from.t());
    attribute.is_graph =
        from.type() == onnx::AttributeProto::GRAPH || from.type() == onnx::AttributeProto::GRAPHS;
    return attribute;
  }

  const std::string& origin_;
};

OnnxGraph read_stream(pb::io::ZeroCopyInputStream& stream, std::int64_t bytes,
                      const std::string& origin) {
  if (bytes > kMaxOnnxBytes)
    refuse(origin, "found " + std::to_string(bytes) +
                       " bytes, expected at most 2 GiB: export the "
                       "weights as external data");
  const SievedOnnx sieved = sieve_onnx(stream);
  if (sieved.is_full) refuse(origin, "its graph has more than 64 MiB without the weights");
  onnx::ModelProto model;
  if (bytes == 0 || !sieved.is_message || sieved.consumed != bytes ||
      !model.ParseFromString(sieved.graph))
    refuse(origin, "expected an ONNX model, found bytes that are none, or are cut off");
  return Reader(origin).read(model);
}

/// A file that is open for reading.
class File {
 public:
  explicit File(const std::filesystem::path& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse(path.string(), std::string("cannot be read: ") + strerror(errno));
    if (struct stat status{}; fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      bytes_ = status.st_size;
      return;
    }
    close(descriptor_);
    refuse(path.string(), "cannot be read: it is not a regular file");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(descriptor_); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  int descriptor_;
  std::int64_t bytes_ = 0;
};

}  // namespace

const OnnxAttribute* OnnxNode::attribute(std::string_view wanted) const {
  for (const OnnxAttribute& attribute : attributes)
    if (attribute.name == wanted) return &attribute;
  return nullptr;
}

std::int64_t OnnxNode::integer(std::string_view wanted, std::int64_t fallback) const {
  const OnnxAttribute* found = attribute(wanted);
  return found == nullptr ? fallback : found->integer;
}

OnnxGraph read_onnx(const std::filesystem::path& path) {
  const File file(path);
  pb::io::FileInputStream stream(file.descriptor());
  OnnxGraph graph = read_stream(stream, file.bytes(), path.string());
  graph.name = path.stem().string();
  return graph;
}

OnnxGraph parse_onnx(std::string_view bytes, const std::string& origin) {
  pb::io::ArrayInputStream stream(
      bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), kMaxOnnxBytes)));
  OnnxGraph graph = read_stream(stream, static_cast<std::int64_t>(bytes.size()), origin);
  graph.name = "graph";
  return graph;
}

bool is_onnx_path(const std::filesystem::path& path) {
  return path.extension() == ".onnx";
}

}  // namespace plimsoll
