#include "policy/remat/segments/keep_all.hpp"

#include "policy/remat/segments/segments.hpp"

namespace plimsoll {

KeepAll keep_all(const Problem& problem, ProcessorId processor, const std::string& policy) {
  KeepAll all{equal_segments(problem, processor, 1, policy), {}};
  all.needs = needs_of(all.plan, problem, processor);
  return all;
}

}  // namespace plimsoll
