/// Builds workloads. freeze() makes a Boost.Graph DAG of the forwards (topological_order.hpp),
/// checks it, orders it and flattens it.
///
/// A reader comes after the maker of a value, and after those changes in place that were added
/// before it; a change in place comes after the readers added before it.
#pragma once

#include "workload/core/workload.hpp"

#include <memory>
#include <string>
#include <vector>

namespace plimsoll {

/// An operator as the front ends describe it; see Operator for the meaning of the fields.
struct OperatorSpec {
  std::string name;
  Phase phase = Phase::forward;
  OperatorClass operator_class = OperatorClass::other;
  std::optional<DType> dtype;
  OperatorId forward = kNoOperator;
  Flops flops;
  Bytes traffic;
  Additions additions;
  std::optional<Time> given_time;
  std::optional<Energy> given_energy;
  std::uint32_t launches = 1;
  Bytes workspace;
  KernelScratch scratch;
  KernelShape kernel;
  bool runs_once = false;
  bool is_random = false;
  bool is_whole = false;
  Collective collective;
  std::vector<TensorId> reads, updates, kept, bare;
};

class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::string name);
  ~WorkloadBuilder();

  TensorId add(Tensor tensor);
  OperatorId add(OperatorSpec spec);
  [[nodiscard]] const Tensor& operator[](TensorId) const;
  /// Sets Tensor::later.
  void note_later(TensorId of, TensorId later);
  /// Bytes that it reads, makes, and changes.
  [[nodiscard]] Bytes moved(const OperatorSpec& spec) const;

  /// Orders forwards topologically (stable: the order of adding breaks ties), appends backwards in
  /// the order in which they were added, computes saved_bytes and returns the frozen step. The
  /// builder is spent. Throws std::invalid_argument naming the operators of a cycle. O(operators +
  /// reads).
  [[nodiscard]] Workload freeze();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
