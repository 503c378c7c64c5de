#include "policy/interface/other_answer.hpp"

#include <utility>

#include <fmt/format.h>

namespace plimsoll {

OtherAnswer answer_of(const Problem& problem, const PolicyInfo& policy, const Node& parameters,
                      std::int64_t work) {
  WorkMeter meter(work, problem.work.meter());
  Problem metered = problem;
  metered.work = Work(&meter);
  try {
    Diagnostics diagnostics;
    const auto bound = policy.bind(parameters, diagnostics);
    diagnostics.throw_if_errors();
    Planned planned = bound->plan(metered);
    if (auto* no = std::get_if<Infeasible>(&planned)) return std::move(*no);
    return std::get<Plan>(std::move(planned));
  } catch (const InputError& error) {
    return LeftOut{policy.name, error.diagnostics().front().message};
  } catch (const QuantityOverflow&) {
    return LeftOut{policy.name, "its times leave the range of 106 days"};
  } catch (const WorkLimitReached& reached) {
    if (reached.meter != &meter) throw;
    return LeftOut{policy.name, fmt::format("it takes more than {} steps of work", work)};
  }
}

}  // namespace plimsoll
