#include "scenario/document/training_options.hpp"

#include "base/names_hint.hpp"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMaxTrainingSteps = 1'000'000'000'000;
constexpr std::int64_t kMaxStepsPerDay = 86'400'000'000;

Format<CheckpointInterval> interval_format() {
  using Rule = CheckpointInterval::Rule;
  auto read = [](const Node& node, Diagnostics& diagnostics) -> std::optional<CheckpointInterval> {
    const std::map<std::string, Rule> words = {
        {"best", Rule::best}, {"young", Rule::young}, {"daly", Rule::daly}};
    if (node.is_scalar())
      if (const auto word = words.find(node.scalar()); word != words.end())
        return CheckpointInterval{word->second, 0};
    Diagnostics of_steps;
    if (const auto steps = integer(1, kMaxTrainingSteps).read(node, of_steps))
      return CheckpointInterval{Rule::steps, *steps};
    diagnostics.error(
        node.where(),
        "expected a number of steps, `best`, `young` or `daly`; found " + node.describe());
    return std::nullopt;
  };
  Shape shape;
  shape.title = "how often";
  shape.text = "a number of steps, best, young or daly";
  return {std::move(read), std::move(shape)};
}

}  // namespace

Format<TrainingOptions> training_format() {
  const auto failures = Record<PowerFailures>("power_failures", "Failures that empty the RAM.")
                            .where(&PowerFailures::where)
                            .required("mean_time_between", &PowerFailures::mean_time_between,
                                      quantity<Time>(), "of failures, at work and at rest")
                            .optional("restart", &PowerFailures::restart, quantity<Time>(),
                                      "until the program runs again; default 0 s")
                            .format();
  const auto checkpoints =
      Record<CheckpointOptions>("checkpoints", "Parameters and optimizer state on a storage.")
          .where(&CheckpointOptions::where)
          .required("to", &CheckpointOptions::to, located(name()),
                    "a memory that outlives the power")
          .optional("every", &CheckpointOptions::every, interval_format(),
                    "a number of steps, or `best`, `young`, `daly`; default best")
          .format();
  return Record<TrainingOptions>("training", "What becomes of the step over days.")
      .where(&TrainingOptions::where)
      .optional("steps", &TrainingOptions::steps, integer(1, kMaxTrainingSteps),
                "of the whole training")
      .optional("steps_per_day", &TrainingOptions::steps_per_day, integer(1, kMaxStepsPerDay),
                "at rest between them; default one after the other")
      .optional("power_failures", &TrainingOptions::power_failures, failures,
                "what empties the RAM; default never")
      .optional("checkpoints", &TrainingOptions::checkpoints, checkpoints,
                "what survives that; default nothing")
      .format();
}

void check_training(const TrainingOptions& training, const Platform& platform,
                    Diagnostics& diagnostics) {
  if (training.power_failures && training.power_failures->mean_time_between == Time{})
    diagnostics.error(training.power_failures->where,
                      "`mean_time_between` is 0 s; expected more than zero");
  if (training.power_failures && !training.checkpoints && !training.steps)
    diagnostics.error(training.power_failures->where,
                      "without `checkpoints` each failure starts the training again, and nothing "
                      "says how long it is",
                      "`steps` says how many it has");
  if (!training.checkpoints) return;
  const CheckpointOptions& checkpoints = *training.checkpoints;
  if (!training.power_failures && checkpoints.every.rule != CheckpointInterval::Rule::steps)
    diagnostics.error(checkpoints.where,
                      "without `power_failures` nothing determines how often to write a checkpoint",
                      "`every: 100` says after how many steps");
  if (const auto found = platform.find_memory(checkpoints.to.value)) {
    if (platform[*found].is_switch)
      diagnostics.error(checkpoints.to.where,
                        fmt::format("`{}` is a switch, which holds nothing", checkpoints.to.value));
    return;
  }
  std::vector<std::string> known;
  for (const Memory& memory : platform.memories)
    if (!memory.is_switch) known.push_back(memory.name);
  diagnostics.error(checkpoints.to.where,
                    fmt::format("the platform has no memory `{}`", checkpoints.to.value),
                    hint_of_names(checkpoints.to.value, known));
}

}  // namespace plimsoll
