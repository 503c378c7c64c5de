/// The layer language: a network as a list of layers, with named blocks, repeats and named values.
///
///   workload: tiny-resnet
///   with: {classes: 10, width: 16}  # numbers that a scenario may override
///   input: [3, 32, 32]          # of one sample; {shape: [512], type: indices} for token ids
///   blocks:
///     residual:
///       with: {channels: required}
///       layers:
///         - conv2d: {channels: channels, kernel: 3, padding: 1, bias: false}
///         - batch_norm
///         - add: {skip: input, in_place: true}
///         - relu
///   layers:
///     - conv2d: {channels: width, kernel: 3, padding: 1}
///     - residual: {channels: width, repeat: 3}
///     - global_avg_pool
///     - linear: classes
///   loss: cross-entropy
///
/// A layer reads the one before it, or the value named by `from`; `name` names what it makes. In a
/// block `input` is what the block reads; names are local to a block. A block that reads more
/// values says under which names (`reads: [previous]`), and its caller which they are (`reads:
/// {previous: stem}`). `trained` says which of its parameters are trained, for a block those of all
/// its layers that do not say it themselves, and so does `bits`. An argument is a whole number or an expression
/// (workload/network/expression.hpp) of the names of `with`, of the block's own, and of `in`, the
/// channels that the layer reads, and `pytorch_2`, which is 1 where that is the `framework`, else 0;
/// the first argument may be given alone. `repeat: 0` leaves a layer out.
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/network/expression.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// A number with its place.
struct Argument {
  std::string name;  ///< empty: the first argument of the layer
  Location where;
  Expression value;
};

struct LayerSpec {
  Location where;
  std::string kind;  ///< an operator (workload/operators/operator_rules.hpp) or a block
  std::string name;  ///< of its output; empty where it has none
  std::optional<Located<std::string>> from, second_input, link;
  std::vector<Located<std::string>> parts;
  /// Of a block: its name for a value, and what that is here.
  std::vector<std::pair<Located<std::string>, Located<std::string>>> reads;
  std::optional<Argument> repeat;
  std::vector<Argument> arguments;
  std::optional<Trained> trained;
  std::optional<Located<ElementBits>> bits;
  bool is_read = true;  ///< false: a part could not be read, and may be anything
};

struct BlockSpec {
  Location where;
  /// Its numbers in order; nothing where one must be given.
  std::vector<std::pair<Located<std::string>, std::optional<Argument>>> with;
  std::vector<Located<std::string>> reads;  ///< values beside its input
  std::vector<LayerSpec> layers;
};

struct NetworkInput {
  std::vector<Argument> shape;
  bool indices = false;
};

struct LayersSpec {
  Location where;
  std::string name;
  NetworkInput input;
  NamedIntegers with;
  std::map<std::string, BlockSpec> blocks;  ///< the standard blocks included
  std::vector<LayerSpec> layers;
  std::vector<Located<std::string>> auxiliary;  ///< values with a loss of their own
  std::optional<Loss> loss;
  std::optional<Framework> framework;
  std::optional<std::int64_t> batch;
  std::optional<Optimizer> optimizer;
};

inline constexpr std::string_view kBlockInput = "input";
inline constexpr std::string_view kChannelsIn = "in";
inline constexpr std::string_view kIsPyTorch2 = "pytorch_2";

/// How a network is written. Reading checks all names: of layers, arguments, values and blocks, and
/// that no block contains itself.
[[nodiscard]] Format<LayersSpec> layers_format();

}  // namespace plimsoll
