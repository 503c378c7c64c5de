#include "scenario/document/expectation.hpp"

#include "base/names_hint.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

template <class T>
void check_limits(Limits<T>& limits, const Node& node, Diagnostics& diagnostics) {
  if (!limits.at_most && !limits.at_least && !limits.equals)
    diagnostics.error(node.where(),
                      "limits nothing; expected `equals`, or `at_most`, `at_least` or both");
  if (limits.equals && (limits.at_most || limits.at_least))
    diagnostics.error(node.where(), "`equals` says all; expected it without `at_most`, `at_least`");
  if (limits.at_most && limits.at_least && *limits.at_least > *limits.at_most)
    diagnostics.error(
        node.where(),
        fmt::format("at_least ({}) is more than at_most ({}): no value satisfies both",
                    to_text(*limits.at_least), to_text(*limits.at_most)));
}

template <class T>
Format<Limits<T>> limits_of(const Format<T>& metric) {
  return Record<Limits<T>>("limits", "What a metric may be.")
      .optional("at_most", &Limits<T>::at_most, metric, "the largest value that is fine")
      .optional("at_least", &Limits<T>::at_least, metric, "the least value that is fine")
      .optional("equals", &Limits<T>::equals, metric, "the only value that is fine")
      .where(&Limits<T>::where)
      .check({"at_most", "at_least", "equals"}, check_limits<T>)
      .format();
}

template <class T>
Format<Limits<T>> limits_of() {
  return limits_of(quantity<T>());
}

/// A bare number counts samples per second.
Format<SampleRate> throughput() {
  Format<SampleRate> format = quantity<SampleRate>();
  Shape number;
  number.kind = Shape::Kind::number;
  number.minimum = 0;
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = format.shape.title;
  shape.parts = {std::move(number), std::move(format.shape)};
  return {std::move(format.read), std::move(shape)};
}

Format<ExpectedStatus> status() {
  return one_of<ExpectedStatus>({{"ok", ExpectedStatus::ok},
                                 {"oom", ExpectedStatus::oom},
                                 {"deadlock", ExpectedStatus::deadlock},
                                 {"infeasible", ExpectedStatus::infeasible}});
}

template <class T>
void check_names(const NamedLimits<T>& limits, const std::string& what,
                 const std::vector<std::string>& known, const Platform& platform,
                 Diagnostics& diagnostics) {
  for (const auto& [name, limit] : limits)
    if (std::ranges::find(known, name.value) == known.end())
      diagnostics.error(
          name.where, fmt::format("platform `{}` has no {} `{}`", platform.name, what, name.value),
          hint_of_names(name.value, known));
}

}  // namespace

Format<Expectation> expectation_format() {
  using E = Expectation;
  return Record<E>("expectation", "What the results are held to.")
      .where(&E::where)
      .optional("status", &E::status, located(status()), "how the run ends; default ok")
      .optional("peak_memory", &E::peak_memory, map_of(limits_of<Bytes>()),
                "by memory: the peak of what is allocated")
      .optional("makespan", &E::makespan, limits_of<Time>(), "of one iteration alone")
      .optional("period", &E::period, limits_of<Time>(), "of one iteration among many")
      .optional("throughput", &E::throughput, limits_of(throughput()), "samples per second")
      .optional("overhead", &E::overhead, limits_of(fraction()), "time added: 0.5 or 50 %")
      .optional("bubble", &E::bubble, map_of(limits_of(fraction())),
                "by processor: the share of the makespan in which it is idle")
      .optional("energy", &E::energy, limits_of<Energy>(), "of one iteration")
      .optional("energy_per_sample", &E::energy_per_sample, limits_of<Energy>(), "of one sample")
      .optional("saved", &E::saved, limits_of<Bytes>(), "kept for the backward by policy `none`")
      .optional("smallest_budget", &E::smallest_budget, limits_of<Bytes>(),
                "of a planner that finds no plan: what it could meet")
      .format();
}

void check_names(const Expectation& expectation, const Platform& platform,
                 Diagnostics& diagnostics) {
  std::vector<std::string> memories, processors;
  for (const Memory& memory : platform.memories)
    if (!memory.is_switch) memories.push_back(memory.name);
  for (const Processor& processor : platform.processors) processors.push_back(processor.name);
  check_names(expectation.peak_memory, "memory", memories, platform, diagnostics);
  check_names(expectation.bubble, "processor", processors, platform, diagnostics);
}

}  // namespace plimsoll
