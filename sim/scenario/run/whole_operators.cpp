#include "scenario/run/whole_operators.hpp"

#include "platform/core/kernel_kind.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

std::string note_on_whole_operators(const Workload& of_rank, std::int64_t ranks) {
  struct Whole {
    std::size_t operators = 0;
    double flops = 0;
  };
  std::map<std::string, Whole> by_class;
  double all = 0, whole = 0;
  for (const Operator& op : of_rank.operators) {
    if (op.phase == Phase::optimizer) continue;
    const auto flops = static_cast<double>(op.flops.count());
    all += flops;
    if (flops == 0 || !op.is_whole) continue;
    whole += flops;
    Whole& its = by_class[to_text(op.operator_class)];
    its.flops += flops;
    ++its.operators;
  }
  // Classes of a hundredth of them say nothing.
  std::erase_if(by_class, [&](const auto& it) { return it.second.flops < whole / 100; });
  if (whole < all / 100 || by_class.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [name, its] : by_class)
    parts.push_back(fmt::format("{} of {}", its.operators, name));
  return fmt::format(
      "of the operators, {} run whole on each of the {} ranks of the tensor axis: {:.0f} % of a "
      "rank's FLOPs",
      fmt::join(parts, ", "), ranks, 100 * whole / all);
}

}  // namespace plimsoll
