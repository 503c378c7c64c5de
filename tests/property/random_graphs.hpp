/// Random DAGs of operators, with several outputs and in every shape that reads what is there.
#pragma once

#include "property/random_chains.hpp"

namespace plimsoll::test {

inline std::string random_graph(Dice& dice, std::int64_t most_operators = 8) {
  std::vector<std::string> values{"x"};
  std::string text = fmt::format("workload: graph\ninputs: {{x: {} B}}\ngraph:\n", dice(0, 3));
  const std::int64_t operators = dice(1, most_operators);
  for (std::int64_t i = 0; i < operators; ++i) {
    const auto pick = [&] {
      // Mostly the last value, so that long chains with some skips come out.
      const auto last = static_cast<std::int64_t>(values.size()) - 1;
      return values[static_cast<std::size_t>(dice(0, 2) == 0 ? dice(0, last) : last)];
    };
    const std::string first = pick(), second = pick();
    std::string inputs = first;
    if (dice(0, 1) == 1 && second != first) inputs += ", " + second;
    std::string outputs = fmt::format("v{}: {} B", i, dice(0, 4));
    if (dice(0, 4) == 0) outputs += fmt::format(", w{}: {} B", i, dice(0, 3));
    text +=
        fmt::format("  - {{name: o{}, inputs: [{}], outputs: {{{}}}, forward: {} s, backward: {} s",
                    i, inputs, outputs, dice(0, 5), dice(0, 7));
    if (dice(0, 1) == 1)
      text += fmt::format(", forward_workspace: {} B, backward_workspace: {} B", dice(0, 3),
                          dice(0, 3));
    if (dice(0, 2) == 0) text += fmt::format(", parameters: {} B", dice(0, 4));
    text += "}\n";
    values.push_back(fmt::format("v{}", i));
  }
  return text;
}

}  // namespace plimsoll::test
