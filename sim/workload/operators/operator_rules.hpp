/// What every operator of the layer language computes, keeps for backward and needs there: one
/// short entry each. What is kept is what autograd keeps (PyTorch 1.13.1, dropout fused as on a
/// GPU).
///
/// Shapes leave out the batch: [channels, height, width] for images, [positions, features] for
/// sequences, [features] for vectors. Values have the size of the type that the operator computes
/// in, parameters that of the network's dtype; masks take 1 byte an element, indices 8, statistics
/// of normalizations 4.
#pragma once

#include "base/quantity.hpp"
#include "platform/core/platform.hpp"
#include "workload/core/collective.hpp"
#include "workload/core/kernel_scratch.hpp"
#include "workload/core/kernel_shape.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll {

namespace unit {
struct Element : Narrow {};
}  // namespace unit
using Elements = Quantity<unit::Element>;
using Dims = std::vector<std::int64_t>;

[[nodiscard]] Elements elements_of(const Dims& dims);
/// Channels of an image, features of anything else: `in` of the layer language.
[[nodiscard]] std::int64_t channels_of(const Dims& dims);
/// "[64, 56, 56]"
[[nodiscard]] std::string to_text(const Dims& dims);

/// What the elements of a kept tensor are: values of the operator's type, masks, indices,
/// statistics of normalizations, single numbers.
enum class ElementType : std::uint8_t { value, boolean, index, statistic, number };
/// Bytes of one element; `value` is the size of a value.
[[nodiscard]] std::int64_t bytes_of(ElementType type, std::int64_t value);

/// A storage that an operator makes for its backward only.
struct KeptExtra {
  std::string name;
  Dims dims;  ///< the batch, where it has one, in front
  ElementType type = ElementType::value;
  bool for_weight = false;  ///< nothing where the weight is frozen
};
/// `value`: bytes of one value.
[[nodiscard]] Bytes bytes(const KeptExtra& extra, std::int64_t value);

using RuleArguments = std::vector<std::pair<std::string_view, std::int64_t>>;

/// An operator applied to inputs of known shapes.
struct RuleCall {
  std::vector<Dims> inputs;
  bool can_update = false;  ///< nothing else needs the first input's bytes
  std::int64_t batch = 1;
  std::int64_t element = 4;  ///< bytes of one element of the type that it computes in
  RuleArguments arguments;
  /// Of an unpooling: what the pooling that it undoes read, and made.
  Dims pooled_from, pooled_to;

  [[nodiscard]] std::int64_t operator[](std::string_view argument) const;
  /// Bytes of a value of this shape, over the batch.
  [[nodiscard]] Bytes bytes(const Dims& dims) const;
  /// The shape with the batch in front.
  [[nodiscard]] Dims over_batch(const Dims& dims) const;
};

/// What the call means.
struct OperatorEffect {
  enum class Form : std::uint8_t {
    fresh,     ///< y is a storage of its own
    view,      ///< y is the storage of x; no operator at all
    in_place,  ///< y replaces the bytes of x
    same,      ///< y is the storage of x, with a gradient of its own; no operator in the forward
    no_output  ///< a loss: what it leaves is only for its backward
  };
  /// For which gradients the backward reads inputs and extras, where it keeps them.
  enum class Inputs : std::uint8_t {
    all,      ///< any (a normalization)
    weight,   ///< those of parameters other than biases (a convolution)
    partner,  ///< each input for those of the others (a product)
    first     ///< any, but only the first input is read (a normalization that then adds another)
  };
  enum class Gradient : std::uint8_t {
    fresh,  ///< a storage of its own for every input
    pass,   ///< the incoming gradient is handed on
    same    ///< y has the gradient of x; no operator in the backward
  };
  Dims output;
  Form form = Form::fresh;
  Gradient gradient = Gradient::fresh;
  bool keeps_inputs = false, keeps_output = false;
  bool views_output = false;  ///< y is a view of what it computes
  /// Of inputs that are split into parts what it reads, by input; no dimensions: all of it.
  std::vector<Dims> read_parts;
  Inputs inputs = Inputs::all;
  std::vector<KeptExtra> extras;  ///< further storages that backward reads
  /// By name: `bias` is what bias-only training trains.
  std::vector<std::pair<std::string, Dims>> parameters;
  bool backward_reads_parameters = true;
  /// Of a weight that is copied into another type autograd keeps the copy even where no input has a
  /// gradient: all gradients are one node's (a convolution).
  bool keeps_weight = false;
  bool sparse_parameters = false;  ///< forward reads only as many rows as it has outputs
  Elements macs;                   ///< multiply-adds of the forward
  Flops forward_flops;             ///< all of the forward, 2 per multiply-add
  Flops backward_flops;  ///< of the backward, without 2 macs for each gradient of a product
  bool backward_is_whole = false;  ///< backward_flops has these, too
  Bytes forward_workspace, backward_workspace;
  /// While it makes its output, the gradient of its input, that of its weight, the one and then the
  /// other.
  KernelScratch forward_scratch, input_scratch, weight_scratch, backward_scratch;
  KernelShape kernel;
  bool is_constant = false;  ///< no gradient goes through it
  /// What ranks of an axis do with x, and with the gradient of y, in place of computing.
  struct Exchange {
    CollectiveKind forward = CollectiveKind::none, backward = CollectiveKind::none;
    MeshAxis axis = MeshAxis::tensor;
  };
  std::optional<Exchange> exchange;
  /// Attention to blocks of keys and values that ranks of the context axis pass round.
  struct Ring {
    std::int64_t ranks = 1;
    /// Of the rank's own block; of each other one.
    Flops own_forward, own_backward, forward, backward;
  };
  std::optional<Ring> ring;
};

/// The value of a switch that is not given: in place where nothing else needs the bytes.
inline constexpr std::int64_t kWherePossible = 2;
/// The default of an attribute that must be given.
inline constexpr std::int64_t kRequired = -1;
/// The default of a window's number along the width: that along the height.
inline constexpr std::int64_t kAsHeight = -2;

/// What torch.autocast makes of an operator (autocast.hpp).
enum class Autocast : std::uint8_t {
  low,        ///< computes in 16 bits; inputs and parameters are cast to them
  full,       ///< computes in fp32; inputs are cast to it
  softmax,    ///< the same, but reads fp16 as it is, and makes fp32 of it
  parameter,  ///< makes what its parameters are, fp32, and reads inputs as they are
  widest,     ///< makes the widest of its inputs, which it reads as they are
  input,      ///< makes what its first input is
  unknown     ///< a library's affair
};

struct Attribute {
  std::string_view name;
  std::int64_t fallback = kRequired;
};

/// What few operators have.
struct RuleTraits {
  /// The key of a second input ("skip"), or of a list of inputs that replaces the first ("parts").
  std::string_view second_input, input_list;
  /// The key that names an earlier layer: `tied` that whose weight is shared, `pool` the pooling
  /// that is undone, which must be given.
  std::string_view link;
  bool is_loss = false;  ///< reached through `loss:`, not as a layer
  bool reads_indices = false;
  bool is_random = false;  ///< its forward draws random numbers
};

struct OperatorRule {
  std::string_view kind;  ///< as in the file: "conv2d"
  OperatorClass operator_class;
  Autocast autocast;
  std::vector<Attribute> attributes;  ///< the first may be given without its name
  OperatorEffect (*apply)(const RuleCall&);
  std::string_view about;
  RuleTraits traits = {};
};

inline constexpr std::string_view kTied = "tied";
inline constexpr std::string_view kPool = "pool";

/// Its attributes as if none were given.
[[nodiscard]] RuleArguments default_arguments(const OperatorRule& rule);
[[nodiscard]] std::span<const OperatorRule> operator_rules();
/// nullptr where there is none.
[[nodiscard]] const OperatorRule* find_rule(std::string_view kind);

}  // namespace plimsoll
