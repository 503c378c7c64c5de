/// `recompute`, where it is about single operators: which run again, or which planner chooses them.
#pragma once

#include "policy/interface/entry.hpp"
#include "policy/pipeline/parameters/slot_choice.hpp"
#include "policy/remat/segments/named_blocks.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct OperatorReruns {
  enum class Planner : std::uint8_t {
    selective,  ///< a rule: the cores of attention
    blocks,     ///< a rule: as remat/blocks
    search,     ///< as remat/search
    moccasin,   ///< as remat/moccasin
    checkmate   ///< as remat/checkmate
  };
  Planner planner = Planner::search;
  std::vector<BlockNames> blocks;            ///< of that rule; none: the outermost ones
  std::optional<Located<Bytes>> budget;      ///< of each device's memory, for all that is there
  std::optional<std::int64_t> computations;  ///< most runs of an operator
  std::int64_t iterations = 50;              ///< rounds of improvement
  std::int64_t seed = 1;
  std::int64_t nodes = 100;  ///< of the branch and bound of `checkmate`

  /// Whether it is a planner, and not a rule.
  [[nodiscard]] bool has_budget() const {
    return planner != Planner::selective && planner != Planner::blocks;
  }
};

struct RecomputeChoice {
  SlotChoice slots;                         ///< those that run their whole forward again
  std::optional<OperatorReruns> operators;  ///< no slot does then
};

/// `none`, `full`, or a list of slots.
[[nodiscard]] Format<RecomputeChoice> slot_recompute_format();

/// The same, `selective`, or a mapping with `policy` and what that takes.
[[nodiscard]] Format<RecomputeChoice> operator_recompute_format();

}  // namespace plimsoll
