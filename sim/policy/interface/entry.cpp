#include "policy/interface/entry.hpp"

#include "base/names_hint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

std::vector<std::string> processor_names(const Platform& platform) {
  std::vector<std::string> names;
  for (const Processor& processor : platform.processors) names.push_back(processor.name);
  return names;
}

}  // namespace

ProcessorId processor_named(const Problem& problem, const Located<std::string>& name) {
  if (const auto found = problem.platform.find_processor(name.value)) return *found;
  const auto names = processor_names(problem.platform);
  refuse(name.where,
         fmt::format("platform `{}` has no processor `{}`", problem.platform.name, name.value),
         hint_of_names(name.value, names));
}

ProcessorId processor_for(const Problem& problem, const SingleProcessorParameters& parameters) {
  if (parameters.on) return processor_named(problem, *parameters.on);
  const auto names = processor_names(problem.platform);
  if (names.size() == 1) return ProcessorId{0};
  refuse(parameters.where,
         fmt::format("policy `{}` runs on one processor, platform `{}` has {}", parameters.name,
                     problem.platform.name, names.size()),
         names.empty() ? "" : fmt::format("say which: `on: {}`", names.front()));
}

}  // namespace plimsoll
