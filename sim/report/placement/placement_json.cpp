#include "report/placement/placement_json.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

const char* name_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::does_not_fit:
      return "does-not-fit";
    case Fit::unknown:
      break;
  }
  return "unknown";
}

double gap_of(const ExactPlacement& found) {
  if (found.is_optimal()) return 0;
  return static_cast<double>((found.end - found.lower_bound).count()) /
         static_cast<double>(found.lower_bound.count());
}

}  // namespace

std::string placement_json(const BufferList& list, const PlacementAnswer& answer) {
  using Json = nlohmann::ordered_json;
  const ExactPlacement& found = answer.found;
  Json object{{"file", list.origin}, {"method", answer.method}};
  if (answer.capacity) object["capacity_bytes"] = answer.capacity->count();
  object["result"] = name_of(found.fit);
  object["proven"] = answer.is_proven();
  object["optimal"] = found.is_optimal();
  object["end_bytes"] = found.end.count();
  object["lower_bound_bytes"] = found.lower_bound.count();
  object["gap"] = gap_of(found);
  object["load_bytes"] = answer.load.count();
  object["no_reuse_bytes"] = answer.total.count();
  object["steps"] = found.steps;
  Json& all = object["buffers"] = Json::array();
  for (std::size_t i = 0; i < list.ids.size(); ++i) {
    const TimedBuffer& it = list.buffers[i];
    Json buffer{{"id", list.ids[i]},
                {"lower", it.lower},
                {"upper", it.upper},
                {"size_bytes", it.size.count()}};
    if (list.has_alignment) buffer["alignment_bytes"] = it.alignment.count();
    buffer["offset_bytes"] = found.offsets[i].count();
    all.push_back(std::move(buffer));
  }
  // Names of files and buffers may hold any bytes.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace plimsoll
