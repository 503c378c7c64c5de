#include "policy/hybrid/graph/runtime_factor.hpp"
#include "policy/hybrid/poet/poet_parameters.hpp"
#include "policy/interface/registry.hpp"

namespace plimsoll {

namespace {

Planned plan_poet(const Problem& problem, const PoetParameters& parameters) {
  return parameters.published ? plan_published_poet(problem, parameters)
                              : plan_corrected_poet(problem, parameters);
}

}  // namespace

PolicyInfo hybrid_poet_policy() {
  using Parameters = PoetParameters;
  auto record = paging_record<Parameters>("hybrid/poet");
  record
      .optional("runtime_factor", &Parameters::runtime_factor, runtime_factor_format(),
                "the most time, as a multiple of that of all operators, each once. Published: of "
                "compute alone, default 1. Else of runs and copies together, as if nothing "
                "overlapped, default: no limit")
      .optional("nodes", &Parameters::nodes, integer(0, 10'000'000),
                "of the branch and bound, before it gives up the proof; default 200")
      .optional("published", &Parameters::published, boolean(),
                "whether the program is the published one, with all that it leaves out; default "
                "false")
      .optional("counted_twice", &Parameters::counted_twice, located(name()),
                "published: the value whose readers the published code lists twice, so that its "
                "bytes are freed twice: `loss` in POET's own networks; default none");
  return make_policy<Parameters>(
      {.name = "hybrid/poet",
       .summary = "The staged plan of least energy that recomputes and pages, by an integer "
                  "program.",
       .paper = "Patil et al. 2022, \"POET: Training Neural Networks on Tiny Devices with "
                "Integrated Rematerialization and Paging\", ICML, arXiv:2207.07697, solved by CBC. "
                "With `published: true` as its repository has it, copies back last in each stage. "
                "Else corrected: values come back as the stage begins that needs them, leave as "
                "soon as they are made, the capacity of storage counts, so does the time of "
                "copies, and whatever a network holds in memory; in the form of remat/checkmate, "
                "from a plan of a search down",
       .assumes = "a workload of one processor, one microbatch, of at most 256 operators, on a "
                  "platform with powers or energies. Published: a compute graph of at most 100 "
                  "operators with one output each, without workspaces. Without storage only "
                  "recomputation is left",
       .guarantees = "within the budget. The bound on energy holds for plans of its kind: one "
                     "value a stage, in the order of the graph. It is the solver's, to a "
                     "millionth, and the plan's own energy where `nodes` were enough",
       .complexity = "a linear program of O(operators (operators + reads)) columns and rows; "
                     "exponential in the worst case, for at most `nodes`"},
      record, plan_poet);
}

}  // namespace plimsoll
