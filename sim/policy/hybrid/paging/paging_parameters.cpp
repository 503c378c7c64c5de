#include "policy/hybrid/paging/paging_parameters.hpp"

#include "policy/hybrid/graph/known_energies.hpp"

#include <optional>

namespace plimsoll {

namespace {

/// None is an error only where one is asked for.
void find_storage(const Problem& problem, const PagingParameters& parameters, PagingPlace& place) {
  try {
    place.memories = offload_memories(problem, parameters);
    place.has_storage = true;
  } catch (const InputError&) {
    if (parameters.to) throw;
  }
}

}  // namespace

PagingPlace paging_place(const Problem& problem, const PagingParameters& parameters,
                         const OperatorGraph& graph) {
  const ProcessorId processor = processor_for(problem, parameters);
  PagingPlace place{
      problem, graph, {.processor = processor, .home = problem.platform[processor].memory}, false};
  if (parameters.paging) find_storage(problem, parameters, place);
  const auto storage = place.has_storage ? std::optional(place.memories.storage) : std::nullopt;
  require_known_energies(problem, processor, storage, parameters.where, parameters.name);
  return place;
}

}  // namespace plimsoll
