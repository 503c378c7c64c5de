/// A graph of operators with all that it refers to.
#pragma once

#include "base/dense_id.hpp"
#include "execution/judge.hpp"
#include "policy/graph/rerun_groups.hpp"

#include <string>
#include <utility>
#include <vector>

namespace plimsoll::test {

struct GraphHere {
  GraphHere(Workload of, const Platform& on)
      : platform(on),
        topology(platform),
        workload(std::move(of)),
        view(chain_view(workload)),
        problem{workload, view, platform, topology, judge_by_execution},
        graph(operator_graph(problem, ProcessorId{0})),
        groups(rerun_groups(graph)) {}

  const Platform platform;
  const Topology topology;
  const Workload workload;
  const ChainView view;
  const Problem problem;
  const OperatorGraph graph;
  const RerunGroups groups;
};

/// The names of the operators that a plan runs, in their order: "a b a".
inline std::string runs_of(const Plan& plan, const Workload& workload) {
  std::string names;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::compute)
      names += (names.empty() ? "" : " ") + workload.operators[index(step.op)].name;
  return names;
}

}  // namespace plimsoll::test
