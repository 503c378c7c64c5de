#include "workload/network/divided_positions.hpp"

#include "base/divisors.hpp"
#include "workload/network/axis_problems.hpp"
#include "workload/network/division.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Beside what works on each position alone.
constexpr std::string_view kWithRows[] = {"embedding",           "dispatch",        "expert_linear",
                                          "combine_rows",        "repeat_features", "sum_loss",
                                          "linear_cross_entropy"};

class PositionCheck {
 public:
  PositionCheck(const Network& network, std::span<const NetworkCall> calls,
                const Located<std::int64_t>& axis, std::int64_t part)
      : network_(network),
        calls_(calls),
        axis_(axis),
        part_(part),
        problems_(axis.where, AxisProblems::kMost) {}

  void run() {
    for (const NetworkCall& call : calls_) check(call);
    for (const NetworkValue& value : network_.values)
      if (network_.storages[value.storage].is_input) check_input(value);
    problems_.throw_if_any();
  }

 private:
  void check(const NetworkCall& call) {
    const std::string_view kind = call.rule->kind;
    if (works_on_positions(kind) || std::ranges::find(kWithRows, kind) != std::end(kWithRows))
      return;
    const std::string layer = call.name.substr(call.name.rfind('/') + 1);
    if (!is_ring_attention(call))
      return problems_.add(
          fmt::format("`context` divides positions, and `{}` ({}) works on those of all ranks",
                      kind, layer),
          kind.starts_with("attention") || kind == "product" || kind == "split_heads"
              ? "what is passed round is key and value of a fused `dot_product_attention`, as "
                "`grouped_attention` has it with `framework: pytorch-2`"
              : "");
    is_causal_ = is_causal_ || argument_of(call, "causal") != 0;
    if (argument_of(call, "window") != 0)
      problems_.add(
          fmt::format("`context` with a `window` ({}) is not supported yet: a rank would skip "
                      "blocks that lie before it",
                      layer));
  }

  void check_input(const NetworkValue& value) {
    const std::int64_t positions = value.dims.front();
    if (value.dims.size() != (value.indices ? 1 : 2))
      return problems_.add(fmt::format("`context` divides positions, and an input of {} has none",
                                       to_text(value.dims)));
    if (divides(axis_.value, positions)) return;
    std::vector<std::int64_t> possible;
    for (const std::int64_t ranks : divisors_of(positions))
      if (divides(ranks, positions)) possible.push_back(ranks);
    problems_.add(
        fmt::format("`context: {}` does not divide {} positions{}{}", axis_.value, positions,
                    is_causal_ ? " into two chunks a rank, one from either end" : "",
                    part_ > 1
                        ? fmt::format(", which {} ranks of the tensor axis divide as well", part_)
                        : ""),
        possible.empty() ? "expected a sequence that ranks divide"
                         : expected_one_of(possible, axis_.value));
  }

  /// Ranks of the tensor axis divide what each has, and causal attention takes two chunks of it.
  [[nodiscard]] bool divides(std::int64_t ranks, std::int64_t positions) const {
    return positions % (ranks * part_) == 0 && (!is_causal_ || positions % (2 * ranks) == 0);
  }

  const Network& network_;
  const std::span<const NetworkCall> calls_;
  const Located<std::int64_t>& axis_;
  const std::int64_t part_;
  bool is_causal_ = false;
  AxisProblems problems_;
};

}  // namespace

void check_divided_positions(const Network& network, std::span<const NetworkCall> calls,
                             const Located<std::int64_t>& axis, std::int64_t part) {
  PositionCheck(network, calls, axis, part).run();
}

bool is_ring_attention(const NetworkCall& call) {
  return call.rule->kind == "dot_product_attention" && argument_of(call, "heads") != 0;
}

}  // namespace plimsoll
