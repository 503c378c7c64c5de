#include "scenario/suite/execution_difference.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

std::string at(std::int64_t picoseconds) {
  return to_text(Time{picoseconds});
}

/// "12 ms instead of 10 ms"; with the picoseconds where four digits do not show them.
std::string instead_of(std::int64_t is, std::int64_t was) {
  if (at(is) != at(was)) return fmt::format("{} instead of {}", at(is), at(was));
  return fmt::format("{} ps instead of {} ps", is, was);
}

using Lanes = std::map<std::string, std::vector<const PlayedStep*>>;

Lanes by_lane(const RecordedExecution& execution) {
  Lanes lanes;
  for (const PlayedStep& step : execution.steps) lanes[step.lane].push_back(&step);
  return lanes;
}

bool has(const PlayedStep& step, const RecordedTensor& tensor) {
  return std::ranges::any_of(step.tensors, [&](const RecordedTensor& other) {
    return other.is_freed == tensor.is_freed && other.name == tensor.name;
  });
}

/// The first tensor of `one` that `other` does not allocate, or free, as well.
const RecordedTensor* tensor_beyond(const PlayedStep& one, const PlayedStep& other) {
  const auto found = std::ranges::find_if(
      one.tensors, [&](const RecordedTensor& tensor) { return !has(other, tensor); });
  return found == one.tensors.end() ? nullptr : &*found;
}

bool is_same_decision(const PlayedStep& one, const PlayedStep& other) {
  return one.what == other.what && tensor_beyond(one, other) == nullptr &&
         tensor_beyond(other, one) == nullptr;
}

/// Where a lane's steps begin to be others; at least one of the two is there.
struct Fork {
  const PlayedStep* was = nullptr;
  const PlayedStep* is = nullptr;

  [[nodiscard]] std::int64_t time() const {
    if (was == nullptr || is == nullptr) return (was != nullptr ? was : is)->start;
    return std::min(was->start, is->start);
  }
};

std::optional<Fork> fork_of(const std::vector<const PlayedStep*>& was,
                            const std::vector<const PlayedStep*>& is) {
  for (std::size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
    const Fork here{i < was.size() ? was[i] : nullptr, i < is.size() ? is[i] : nullptr};
    if (here.was == nullptr || here.is == nullptr || !is_same_decision(*here.was, *here.is))
      return here;
  }
  return std::nullopt;
}

std::optional<Fork> first_fork(const RecordedExecution& was, const RecordedExecution& is) {
  Lanes before = by_lane(was), now = by_lane(is);
  for (const auto& [lane, steps] : now) before.try_emplace(lane);
  std::optional<Fork> first;
  for (const auto& [lane, steps] : before) {
    const auto fork = fork_of(steps, now[lane]);
    if (fork && (!first || fork->time() < first->time())) first = fork;
  }
  return first;
}

std::string tensor_in_words(const PlayedStep& step, const RecordedTensor& tensor, bool is_new) {
  return fmt::format("`{}` {} `{}`", step.what,
                     tensor.is_freed ? (is_new ? "now frees" : "no longer frees")
                                     : (is_new ? "now allocates" : "no longer allocates"),
                     tensor.name);
}

std::string in_words(const Fork& fork) {
  const PlayedStep& any = fork.is != nullptr ? *fork.is : *fork.was;
  const std::string where = fmt::format("first difference: on {} at {}, ", any.lane, at(any.start));
  if (fork.was == nullptr)
    return where + fmt::format("`{}`, where the baseline has nothing more to do", any.what);
  if (fork.is == nullptr)
    return where + fmt::format("nothing more, where the baseline has `{}`", any.what);
  if (fork.was->what != fork.is->what)
    return where + fmt::format("`{}`, where the baseline has `{}` at {}", fork.is->what,
                               fork.was->what, at(fork.was->start));
  if (const RecordedTensor* more = tensor_beyond(*fork.is, *fork.was))
    return where + tensor_in_words(any, *more, true);
  return where + tensor_in_words(any, *tensor_beyond(*fork.was, *fork.is), false);
}

/// The bytes of a tensor that both steps allocate, where they differ.
std::optional<std::string> other_bytes(const PlayedStep& was, const PlayedStep& is) {
  for (const RecordedTensor& before : was.tensors)
    for (const RecordedTensor& now : is.tensors)
      if (!before.is_freed && !now.is_freed && before.name == now.name && before.bytes != now.bytes)
        return fmt::format("`{}` has {} B instead of {} B", now.name, now.bytes, before.bytes);
  return std::nullopt;
}

/// How a step of the same name went otherwise; nothing where it did not.
std::optional<std::string> other_course(const PlayedStep& was, const PlayedStep& is) {
  if (was.duration != is.duration)
    return fmt::format("`{}` on {}, at {}, takes {}", is.what, is.lane, at(is.start),
                       instead_of(is.duration, was.duration));
  if (auto bytes = other_bytes(was, is))
    return fmt::format("`{}` on {}, at {}: {}", is.what, is.lane, at(is.start), *bytes);
  if (was.start != is.start)
    return fmt::format("`{}` on {} starts at {}", is.what, is.lane,
                       instead_of(is.start, was.start));
  return std::nullopt;
}

/// Of the steps that are the same in number and name on each lane, the first in the order of the
/// baseline that went otherwise.
std::optional<std::string> first_other_course(const RecordedExecution& was,
                                              const RecordedExecution& is) {
  Lanes now = by_lane(is);
  std::map<std::string, std::size_t> next;
  for (const PlayedStep& step : was.steps)
    if (auto course = other_course(step, *now[step.lane][next[step.lane]++])) return course;
  return std::nullopt;
}

/// The first step of the baseline that costs another time today, wherever it is in the plan.
std::optional<std::string> first_other_cost(const RecordedExecution& was,
                                            const RecordedExecution& is) {
  std::map<std::string, std::int64_t> durations;
  for (const PlayedStep& step : is.steps) durations.emplace(step.what, step.duration);
  for (const PlayedStep& step : was.steps) {
    const auto now = durations.find(step.what);
    if (now != durations.end() && now->second != step.duration)
      return fmt::format("`{}` takes {}", step.what, instead_of(now->second, step.duration));
  }
  return std::nullopt;
}

/// When steps take other times, another one may be the last that needs a tensor.
RecordedExecution without_releases(RecordedExecution execution) {
  for (PlayedStep& step : execution.steps)
    std::erase_if(step.tensors, [](const RecordedTensor& it) { return it.is_freed; });
  return execution;
}

std::string explain_same_plan(const RecordedExecution& was, const RecordedExecution& is) {
  // One of the two was not played to its end.
  if (const auto fork = first_fork(was, is))
    return "the same plan gets to another point, so the platform, the workload or the engine "
           "changed; " +
           in_words(*fork);
  if (const auto course = first_other_course(was, is))
    return "the same plan runs otherwise, so the platform, the workload or the engine changed; "
           "first difference: " +
           *course;
  return "the plan and every step of its execution are the same: what changed is what a step "
         "draws or needs beside its tensors (power, workspace, allocator), not the plan";
}

std::string explain_another_plan(const RecordedExecution& was, const RecordedExecution& is) {
  if (const auto fork = first_fork(was, is)) {
    const std::string text = "another plan; " + in_words(*fork);
    const auto cost = first_other_cost(was, is);
    if (!cost)
      return text + ". Every step that is in both takes the time that it took: the planner changed";
    return text + ". Steps that are in both take other times, which may be why: " + *cost;
  }
  const auto course = first_other_course(was, is);
  if (!course) return "another plan of the same steps at the same times: it releases otherwise";
  return "another plan of the same steps, which wait for others, or a changed platform or "
         "workload; first difference: " +
         *course;
}

}  // namespace

std::string explain_difference(const RecordedExecution& was, const RecordedExecution& is) {
  if (was.plan == is.plan) return explain_same_plan(without_releases(was), without_releases(is));
  return explain_another_plan(was, is);
}

}  // namespace plimsoll
