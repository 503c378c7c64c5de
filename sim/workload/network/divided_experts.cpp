#include "workload/network/divided_experts.hpp"

#include "base/divisors.hpp"
#include "workload/network/axis_problems.hpp"
#include "workload/network/division.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

class ExpertDivision {
 public:
  ExpertDivision(std::span<const NetworkCall> calls, std::size_t values,
                 const Located<std::int64_t>& axis)
      : calls_(calls), axis_(axis), is_away_(values, false), problems_(axis.where) {}

  std::vector<ExpertCall> run() {
    for (const NetworkCall& call : calls_) {
      ExpertCall& it = divided_.emplace_back();
      divide(call, it);
      if (call.output != kNoValue) is_away_[call.output] = is_away(call, it);
    }
    if (problems_.is_empty() && !has_experts_)
      problems_.add("`expert` divides the experts of mixtures, and the network has none",
                    "leave `expert` out");
    problems_.throw_if_any();
    return std::move(divided_);
  }

 private:
  /// Whether the output is of rows that were handed out.
  [[nodiscard]] bool is_away(const NetworkCall& call, const ExpertCall& it) const {
    if (it.hands_out) return true;
    return !it.takes_back &&
           std::ranges::any_of(call.inputs, [&](std::uint32_t v) { return bool{is_away_[v]}; });
  }

  void divide(const NetworkCall& call, ExpertCall& it) {
    const std::string_view kind = call.rule->kind;
    it.hands_out = kind == "dispatch";
    it.takes_back = kind == "combine_rows" && is_away_[call.inputs.front()];
    it.holds_part = kind == "expert_linear";
    if (it.hands_out || it.holds_part) check_experts(call);
    if (!it.holds_part) return;
    has_experts_ = true;
    if (!is_away_[call.inputs.front()])
      problems_.add(
          fmt::format("`{}` reads no rows of a `dispatch`, which would hand them to the ranks "
                      "of the expert axis",
                      call.name),
          "leave `expert` out");
  }

  void check_experts(const NetworkCall& call) {
    const std::int64_t experts = argument_of(call, "experts"), held = argument_of(call, "held");
    const std::string_view kind = call.rule->kind;
    if (held != 0)
      problems_.add(
          fmt::format("`held: {}` of `{}` and `expert: {}` both say how many experts a rank "
                      "holds; expected one of them",
                      held, kind, axis_.value),
          fmt::format("without `held`, each of {} ranks holds its part of the {} experts",
                      axis_.value, experts));
    // Of each mixture once, behind its `dispatch`.
    if (experts % axis_.value != 0 && refused_.insert(experts).second)
      problems_.add(fmt::format("`expert: {}` does not divide the {} experts of `{}`", axis_.value,
                                experts, kind),
                    expected_divisor(experts, axis_.value));
  }

  const std::span<const NetworkCall> calls_;
  const Located<std::int64_t>& axis_;
  std::vector<bool> is_away_;  ///< by value: rows at the ranks of their experts
  std::vector<ExpertCall> divided_;
  bool has_experts_ = false;
  std::set<std::int64_t> refused_;  ///< numbers of experts
  AxisProblems problems_;
};

}  // namespace

std::vector<ExpertCall> divide_experts(std::span<const NetworkCall> calls, std::size_t values,
                                       const Located<std::int64_t>& axis) {
  return ExpertDivision(calls, values, axis).run();
}

}  // namespace plimsoll
