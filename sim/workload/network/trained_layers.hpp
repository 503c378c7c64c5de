/// Which layers of a network are trained: as the layer states, else the block around it, else the
/// scenario; none before the layer that `trained_from` names.
#pragma once

#include "workload/core/workload_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

class TrainedLayers {
 public:
  explicit TrainedLayers(const WorkloadOptions& options);

  /// For the layer `name` ("block_1/linear_2"), asked in the order of execution. `said`: by itself,
  /// or by a block around it.
  [[nodiscard]] Trained of(const std::string& name, const std::optional<Trained>& said);
  /// Throws InputError, with the nearest name, where `trained_from` named none of them.
  void check() const;

 private:
  Trained default_;
  std::optional<Located<std::string>> first_;
  bool is_reached_;
  std::vector<std::string> names_;  ///< before it is reached
};

}  // namespace plimsoll
