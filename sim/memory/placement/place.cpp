#include "memory/placement/place.hpp"

namespace plimsoll {

namespace {

constexpr const char* kExact = "exact";

ExactPlacement by_rule(std::span<const TimedBuffer> buffers, PlacementRule rule,
                       std::optional<Bytes> capacity) {
  ExactPlacement found;
  found.offsets = place_by_rule(buffers, rule);
  found.end = end_of(buffers, found.offsets);
  found.lower_bound = lowest_end(buffers);
  found.fit = !capacity || found.end <= *capacity ? Fit::fits
              : found.lower_bound > *capacity     ? Fit::does_not_fit
                                                  : Fit::unknown;
  return found;
}

}  // namespace

std::vector<std::string> placement_methods() {
  std::vector<std::string> names = placement_rule_names();
  names.insert(names.begin(), kExact);
  return names;
}

PlacementAnswer place(std::span<const TimedBuffer> buffers, const PlacementTask& task, Work work) {
  PlacementAnswer answer;
  answer.method = task.rule ? to_text(*task.rule) : kExact;
  answer.capacity = task.capacity;
  answer.load = load_of(buffers);
  for (const TimedBuffer& it : buffers) answer.total += it.size;
  answer.found = task.rule       ? by_rule(buffers, *task.rule, task.capacity)
                 : task.capacity ? fit_exactly(buffers, *task.capacity, task.limit, work)
                                 : lowest_placement(buffers, task.limit, work);
  return answer;
}

}  // namespace plimsoll
