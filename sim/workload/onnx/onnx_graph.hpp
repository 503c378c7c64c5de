/// An ONNX graph as plain values: what the importer needs of a file, without protobuf.
#pragma once

#include "base/diagnostic.hpp"
#include "workload/operators/operator_rules.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// What the elements of an ONNX tensor are, as far as it matters here.
enum class OnnxType : std::uint8_t { fp32, fp16, bf16, fp64, integer, boolean, other };

/// A tensor whose numbers are known only where they are few: those of weights never are.
struct OnnxTensor {
  Dims dims;
  OnnxType type = OnnxType::other;
  bool is_known = false;
  std::vector<std::int64_t> integers;  ///< of integers and booleans
  std::vector<double> reals;           ///< of the others
};

struct OnnxAttribute {
  std::string name;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::optional<OnnxTensor> tensor;
  bool is_graph = false;  ///< control flow
};

struct OnnxNode {
  std::string name, kind, domain;
  std::vector<std::string> inputs, outputs;  ///< empty names: left out
  std::vector<OnnxAttribute> attributes;

  /// nullptr where it is not given.
  [[nodiscard]] const OnnxAttribute* attribute(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
};

/// A dimension of an input: a number, a name, or neither.
struct OnnxDimension {
  std::optional<std::int64_t> size;
  std::string name;
};

struct OnnxInput {
  std::string name;
  OnnxType type = OnnxType::other;
  std::optional<std::vector<OnnxDimension>> dims;  ///< nothing where the file has no shape
};

struct OnnxInitializer {
  std::string name;
  OnnxTensor tensor;
};

struct OnnxGraph {
  Location where;
  std::string name;  ///< of the file, without its extension
  std::int64_t opset = 0;
  /// PyTorch 2 exported it, which keeps neither what it averages nor the numbers that it multiplies
  /// by.
  bool is_of_pytorch_2 = false;
  /// Of any version: an initializer of one number that has a name of its own is a parameter there.
  bool is_of_pytorch = false;
  std::vector<OnnxInput> inputs;  ///< without those that have an initializer
  std::vector<std::string> outputs;
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxNode> nodes;
};

}  // namespace plimsoll
