/// What each operator of a network keeps for its backward, tensor by tensor.
#pragma once

#include "workload/network/network.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// A tensor that one operator keeps.
struct KeptTensor {
  std::string op;         ///< the operator's name
  std::string_view kind;  ///< of the operator, as in the layer language
  std::string role;  ///< "x", "y", or what the rule calls it ("mean", "mask"; the copy of "weight")
  Dims dims;         ///< the batch, where it has one, in front
  DType dtype = DType::fp32;  ///< of values
  ElementType type = ElementType::value;
  Bytes bytes;             ///< of the tensor
  Bytes storage_bytes;     ///< of all of its storage: more than `bytes` for a view of a part
  bool is_shared = false;  ///< an operator before it keeps the same storage
  bool is_input = false;   ///< the storage is an input of the network, which does not count
};

/// In the order of the operators; parameters are left out, copies of them in another type are not.
/// The sum of `storage_bytes` of those that are neither shared nor an input is
/// Workload::saved_bytes. O(operators).
[[nodiscard]] std::vector<KeptTensor> kept_tensors(const Network& network);

}  // namespace plimsoll
