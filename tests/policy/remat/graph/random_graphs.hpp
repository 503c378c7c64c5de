/// Random compute graphs and recorded steps, for tests of planners of graphs. All times are whole
/// picoseconds and all sizes whole bytes, zeros among them.
#pragma once

#include "property/random_chains.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::test {

/// Operators with several outputs and workspaces, some of which run once.
inline std::string random_compute_graph(Dice& dice, std::int64_t most_operators) {
  std::string yaml =
      fmt::format("workload: g\ninputs: {{x: {} B}}\ngraph:\n  unread: {}\n  operators:\n",
                  dice(0, 3), dice(0, 1) == 0 ? "free" : "retain");
  std::vector<std::string> values{"x"};
  for (std::int64_t v = 0, n = dice(1, most_operators); v < n; ++v) {
    std::string reads, makes;
    for (const std::string& value : values)
      if (dice(0, 2) == 0) reads += (reads.empty() ? "" : ", ") + value;
    for (std::int64_t k = 0, outputs = dice(0, 2); k < outputs; ++k) {
      values.push_back(fmt::format("v{}_{}", v, k));
      makes += fmt::format("{}{}: {} B", k == 0 ? "" : ", ", values.back(), dice(0, 9));
    }
    yaml += fmt::format(
        "    - {{name: o{}, inputs: [{}], time: {} ps, outputs: {{{}}}, workspace: {} B, "
        "recompute: {}}}\n",
        v, reads, dice(0, 5), makes, dice(0, 4), dice(0, 5) > 0);
  }
  return yaml;
}

/// Operators whose order is given, each of which reads the one before and, mostly, one from further
/// back: values wait for their readers.
inline std::string line_of_operators(Dice& dice, std::int64_t operators) {
  std::string yaml = "workload: g\ninputs: {p0: 1 B}\ngraph:\n  unread: free\n  operators:\n";
  for (std::int64_t i = 1; i <= operators; ++i) {
    const std::string other = i > 1 && dice(0, 3) > 0 ? fmt::format(", v{}", dice(1, i - 1)) : "";
    yaml += fmt::format(
        "    - {{name: o{0}, inputs: [p{1}{2}], time: {3} ps, outputs: {{p{0}: 1 B, v{0}: {4} "
        "B}}}}\n",
        i, i - 1, other, dice(1, 9), dice(1, 9));
  }
  return yaml;
}

/// A training step of which some operators change what they read in place, in their forward or in
/// their backward, and some keep more for their backward than they make.
inline std::string random_recorded_step(Dice& dice, std::int64_t most_operators) {
  std::string yaml =
      "workload: p\nbatch: 1\nprofile:\n  version: 1\n  inputs: {x: 2 B}\n  operators:\n";
  std::vector<std::string> storages{"x"};
  std::vector<std::string> gradients;
  std::string backwards_read;
  const std::int64_t operators = dice(1, most_operators);
  for (std::int64_t i = 0; i < operators; ++i) {
    std::string reads, updates;
    const auto pick = static_cast<std::size_t>(dice(0, std::ssize(storages) - 1));
    reads = storages[pick];
    if (pick > 0 && dice(0, 2) == 0) updates = storages[pick];
    if (const std::string& more = storages[static_cast<std::size_t>(
            dice(std::max<std::int64_t>(0, std::ssize(storages) - 3), std::ssize(storages) - 1))];
        more != reads)
      reads += ", " + more;
    const std::string kept = dice(0, 1) == 0 ? fmt::format("k{}: {} B", i, dice(0, 6)) : "";
    std::string backward_reads = dice(0, 1) == 0 ? reads : storages[pick];
    std::string backward_updates = pick > 0 && dice(0, 5) == 0 ? storages[pick] : "";
    if (!kept.empty()) backward_reads += fmt::format(", k{}", i);
    std::string makes;
    if (updates.empty() || dice(0, 1) == 0) {
      makes = fmt::format("s{}: {} B", i, dice(0, 9));
      storages.push_back(fmt::format("s{}", i));
      if (dice(0, 1) == 0) {
        backward_reads += fmt::format(", s{}", i);
        if (backward_updates.empty() && dice(0, 2) == 0) backward_updates = fmt::format("s{}", i);
      }
    }
    yaml += fmt::format(
        "    - name: o{0}\n      forward: {{time: {1} ps, reads: [{2}], updates: [{3}], makes: "
        "{{{4}}}, keeps: {{{5}}}, workspace: {6} B}}\n      backward: {{time: {7} ps, reads: "
        "[{8}], updates: [{11}], makes: {{d{0}: {9} B}}, workspace: {10} B}}\n",
        i, dice(0, 5), reads, updates, makes, kept, dice(0, 3), dice(0, 9), backward_reads,
        dice(0, 3), dice(0, 3), backward_updates);
  }
  return yaml;
}

}  // namespace plimsoll::test
