/// What steps that use a gradient wait for while a plan is built, if reductions change it.
///
/// Reductions of one group, such as an all-reduce, know their own order: each names those of the
/// group that it comes after. Before the first of a group on a buffer comes all that used the
/// buffer; who uses it later comes after the last ones, which are those that no other reduction
/// comes after.
#pragma once

#include "base/dense_id.hpp"
#include "plan/core/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plimsoll {

class OpenReductions {
 public:
  /// The last reductions of the buffer so far.
  [[nodiscard]] std::span<const StepId> of(BufferId buffer) const {
    if (uses_.empty()) return {};  // as in most plans
    const auto found = uses_.find(index(buffer));
    if (found == uses_.end()) return {};
    return found->second.last;
  }

  /// Whether the buffer has been reduced by the group.
  [[nodiscard]] bool has_begun(BufferId buffer, std::uint32_t group) const {
    const auto found = uses_.find(index(buffer));
    return found != uses_.end() && found->second.group == group;
  }

  /// The group begins on the buffer: its reductions come after `before`.
  void begin(BufferId buffer, std::uint32_t group, std::vector<StepId> before) {
    uses_[index(buffer)] = {group, std::move(before), {}};
  }

  /// Adds a reduction of the group that has begun, which comes after the steps of `after`. Returns
  /// what it has to wait for besides.
  [[nodiscard]] std::span<const StepId> add(BufferId buffer, StepId step,
                                            std::span<const StepId> after) {
    Use& use = uses_.at(index(buffer));
    const auto comes_before = [&](StepId s) { return std::ranges::find(after, s) != after.end(); };
    const bool is_first = std::erase_if(use.last, comes_before) == 0;
    use.last.push_back(step);
    return is_first ? std::span<const StepId>(use.before) : std::span<const StepId>();
  }

  /// Another step changes the buffer, after all of its reductions.
  void close(BufferId buffer) {
    if (!uses_.empty()) uses_.erase(index(buffer));
  }

 private:
  struct Use {
    std::uint32_t group = 0;
    std::vector<StepId> before, last;
  };
  std::unordered_map<std::uint32_t, Use> uses_;  ///< by buffer; never iterated
};

}  // namespace plimsoll
