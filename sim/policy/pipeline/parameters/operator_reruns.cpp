#include "policy/pipeline/parameters/operator_reruns.hpp"

#include <string>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Planner = OperatorReruns::Planner;

RecomputeChoice of_operators(OperatorReruns operators) {
  return {SlotChoice::none(), std::move(operators)};
}

/// One of the words, or a list of slots.
Format<RecomputeChoice> words_or_list(std::vector<std::pair<std::string, RecomputeChoice>> words) {
  const auto of_slots = [](SlotChoice slots) {
    return RecomputeChoice{std::move(slots), std::nullopt};
  };
  return either(one_of<RecomputeChoice>(std::move(words)),
                mapped<SlotChoice, RecomputeChoice>(slot_list_format(), of_slots));
}

void check_key(const Node& node, const char* key, bool belongs, const char* where,
               Diagnostics& diagnostics) {
  const Node* found = node.find(key);
  if (found == nullptr || belongs) return;
  diagnostics.error(found->where(), fmt::format("`{}` is a parameter of {}", key, where));
}

/// Each planner takes what the policy of its name takes.
void check_keys(OperatorReruns& reruns, const Node& node, Diagnostics& diagnostics) {
  const bool searches = reruns.planner == Planner::search || reruns.planner == Planner::moccasin;
  check_key(node, "budget", reruns.has_budget(), "planners, which `remat/blocks` is not",
            diagnostics);
  check_key(node, "blocks", reruns.planner == Planner::blocks, "`remat/blocks`", diagnostics);
  check_key(node, "computations", searches, "`remat/search` and `remat/moccasin`", diagnostics);
  check_key(node, "iterations", searches, "`remat/search` and `remat/moccasin`", diagnostics);
  check_key(node, "seed", searches, "`remat/search` and `remat/moccasin`", diagnostics);
  check_key(node, "nodes", reruns.planner == Planner::checkmate, "`remat/checkmate`", diagnostics);
  if (reruns.planner == Planner::moccasin && !reruns.computations) reruns.computations = 2;
}

Format<RecomputeChoice> planned_format() {
  Record<OperatorReruns> record("recompute", "Single operators of each device that run again.");
  record
      .required("policy", &OperatorReruns::planner,
                one_of<Planner>({{"remat/search", Planner::search},
                                 {"remat/moccasin", Planner::moccasin},
                                 {"remat/checkmate", Planner::checkmate},
                                 {"remat/blocks", Planner::blocks}}),
                "the planner of graphs that chooses them, or block by block")
      .optional("blocks", &OperatorReruns::blocks, list_of(block_names_format(), 1),
                "patterns of names, for remat/blocks; default: the outermost blocks")
      .optional("budget", &OperatorReruns::budget, located(quantity<Bytes>()),
                "bytes of each device's memory for all that is there; default: its capacity")
      .optional("computations", &OperatorReruns::computations, integer(1, 1'000'000),
                "most runs of an operator; default unlimited, remat/moccasin: 2")
      .optional("iterations", &OperatorReruns::iterations, integer(0, 1'000'000),
                "rounds of improvement; default 50")
      .optional("seed", &OperatorReruns::seed, integer(0, 1'000'000'000), "default 1")
      .optional("nodes", &OperatorReruns::nodes, integer(0, 10'000'000),
                "of the branch and bound of remat/checkmate; default 100")
      .check({"policy", "budget", "blocks", "computations", "iterations", "seed", "nodes"},
             check_keys);
  return mapped<OperatorReruns, RecomputeChoice>(record.format(), of_operators);
}

}  // namespace

Format<RecomputeChoice> slot_recompute_format() {
  return words_or_list({{"none", {SlotChoice::none(), std::nullopt}}, {"full", {}}});
}

Format<RecomputeChoice> operator_recompute_format() {
  return either(words_or_list({{"none", {SlotChoice::none(), std::nullopt}},
                               {"full", {}},
                               {"selective", of_operators({Planner::selective})}}),
                planned_format());
}

}  // namespace plimsoll
