#include "policy/interface/other_answer.hpp"

#include <utility>

#include <fmt/format.h>

namespace plimsoll {

OtherAnswer answer_of(const Problem& problem, const std::string& name,
                      const std::function<Planned(const Problem&)>& plan, std::int64_t work) {
  WorkMeter meter(work, problem.work.meter());
  Problem metered = problem;
  metered.work = Work(&meter);
  try {
    Planned planned = plan(metered);
    if (auto* no = std::get_if<Infeasible>(&planned)) return std::move(*no);
    return std::get<Plan>(std::move(planned));
  } catch (const InputError& error) {
    return LeftOut{name, error.diagnostics().front().message};
  } catch (const QuantityOverflow&) {
    return LeftOut{name, "its times leave the range of 106 days"};
  } catch (const WorkLimitReached& reached) {
    if (reached.meter != &meter) throw;
    return LeftOut{name, fmt::format("it takes more than {} steps of work", work)};
  }
}

OtherAnswer answer_of(const Problem& problem, const PolicyInfo& policy, const Node& parameters,
                      std::int64_t work) {
  const auto plan = [&](const Problem& metered) {
    Diagnostics diagnostics;
    const auto bound = policy.bind(parameters, diagnostics);
    diagnostics.throw_if_errors();
    return bound->plan(metered);
  };
  return answer_of(problem, policy.name, plan, work);
}

}  // namespace plimsoll
