#include "policy/hybrid/paging/paging_parameters.hpp"

#include <fmt/format.h>

namespace plimsoll {

PagingPlace paging_place(const Problem& problem, const PagingParameters& parameters,
                         const OperatorGraph& graph) {
  if (!problem.platform.has_energy())
    refuse_parameter(parameters.where,
                     fmt::format("the platform `{}` states no power and no energy, of which {} "
                                 "looks for the least",
                                 problem.platform.name, parameters.name));
  const ProcessorId processor = processor_for(problem, parameters);
  PagingPlace place{
      problem, graph, {.processor = processor, .home = problem.platform[processor].memory}, false};
  if (!parameters.paging) return place;
  try {
    place.memories = offload_memories(problem, parameters);
    place.has_storage = true;
  } catch (const InputError&) {
    if (parameters.to) throw;
  }
  return place;
}

}  // namespace plimsoll
