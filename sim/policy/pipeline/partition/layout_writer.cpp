#include "policy/pipeline/partition/layout_writer.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Fewer are as short without a repeat.
constexpr std::size_t kLeastRepeats = 3;

/// The symbols of the workload, each with the chain stage that it begins at.
struct Symbols {
  std::string names;
  std::vector<std::size_t> begins;

  void add(char name, std::size_t begin) {
    names += name;
    begins.push_back(begin);
  }
};

Symbols symbols_of(const Workload& workload, const ChainView& chain) {
  Symbols symbols;
  const std::size_t stages = chain.stages.size();
  if (workload.is_chain) {
    for (std::size_t s = 0; s < stages; ++s) symbols.add('t', s);
    return symbols;
  }
  const LayoutUnits units = layout_units(workload, chain);
  if (units.layers.empty()) return symbols;
  // E and L are there even where the network has nothing before its blocks, or after them.
  symbols.add('E', 0);
  for (const std::size_t layer : units.layers) symbols.add('t', layer);
  symbols.add('L', units.after);
  return symbols;
}

std::vector<std::string> stages_of(const Symbols& symbols, const std::vector<std::size_t>& cuts,
                                   const Location& where) {
  std::vector<std::string> stages;
  for (std::size_t slot = 0; slot < cuts.size(); ++slot) {
    const auto found = std::ranges::lower_bound(symbols.begins, cuts[slot]);
    if (found == symbols.begins.end() || *found != cuts[slot])
      refuse(where, fmt::format("stage {} of the pipeline begins inside a layer, and Megatron's "
                                "layouts cut between layers",
                                slot));
    const auto end = slot + 1 < cuts.size()
                         ? std::ranges::lower_bound(symbols.begins, cuts[slot + 1])
                         : symbols.begins.end();
    stages.push_back(symbols.names.substr(static_cast<std::size_t>(found - symbols.begins.begin()),
                                          static_cast<std::size_t>(end - found)));
  }
  return stages;
}

/// `t*5` for a run of equal symbols.
std::string shortened(const std::string& stage) {
  std::string text;
  for (std::size_t at = 0; at < stage.size();) {
    const std::size_t end = std::min(stage.find_first_not_of(stage[at], at), stage.size());
    const std::size_t times = end - at;
    text +=
        times < kLeastRepeats ? stage.substr(at, times) : fmt::format("{}*{}", stage[at], times);
    at = end;
  }
  return text;
}

}  // namespace

std::string layout_text(const Workload& workload, const ChainView& chain,
                        const std::vector<std::size_t>& cuts, const Location& where) {
  const std::vector<std::string> stages = stages_of(symbols_of(workload, chain), cuts, where);
  std::string text;
  // The last stage ends without a `|`.
  const std::size_t ended = stages.size() - 1;
  for (std::size_t at = 0; at < ended;) {
    std::size_t end = at;
    while (end < ended && stages[end] == stages[at]) ++end;
    const std::string stage = shortened(stages[at]) + '|';
    if (end - at < kLeastRepeats)
      for (; at < end; ++at) text += stage;
    else
      text += fmt::format("({})*{}", stage, end - at);
    at = end;
  }
  return text + shortened(stages.back());
}

}  // namespace plimsoll
