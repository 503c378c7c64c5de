#include "policy/roomy_problem.hpp"

#include "base/dense_id.hpp"

namespace plimsoll {

RoomyProblem::RoomyProblem(const Problem& problem, MemoryId memory)
    : platform_(problem.platform),
      problem_{problem.workload, problem.chain, platform_, problem.topology, problem.judge} {
  platform_.memories[index(memory)].capacity = Bytes::unlimited();
}

}  // namespace plimsoll
