#include "policy/budget/problem_with_capacity.hpp"

#include "base/dense_id.hpp"

namespace plimsoll {

ProblemWithCapacity::ProblemWithCapacity(const Problem& problem, MemoryId memory, Bytes usable)
    : platform_(problem.platform), problem_{problem.workload, problem.chain, platform_,
                                            problem.topology, problem.judge, problem.work} {
  Memory& it = platform_.memories[index(memory)];
  it.capacity = usable.is_unlimited() ? usable : usable + it.reserved;
}

}  // namespace plimsoll
