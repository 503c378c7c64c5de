#include "scenario/run/failure_words.hpp"

#include "base/rounded_text.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostWaits = 3;

std::string waits_in_words(std::span<const std::string> cycle) {
  std::string text =
      fmt::format("{}", fmt::join(cycle.first(std::min(cycle.size(), kMostWaits)), "; "));
  if (cycle.size() > kMostWaits) text += fmt::format("; and {} more", cycle.size() - kMostWaits);
  return text;
}

}  // namespace

std::string request_in_words(const OutOfMemory& oom) {
  std::string text =
      fmt::format("{} asks for {} of {}", oom.step, text_beside(oom.asked, oom.free), oom.memory);
  if (oom.free == oom.capacity)
    text += fmt::format(", which has only {}", text_beside(oom.capacity, oom.asked));
  else
    text += fmt::format(", where {} of {} is free", text_beside(oom.free, oom.asked),
                        to_text(oom.capacity));
  if (oom.largest_free_block != oom.free)
    text += fmt::format(", in blocks of at most {}", to_text(oom.largest_free_block));
  return text;
}

std::string budget_in_words(Bytes budget) {
  if (!is_rounded_in_text(budget)) return to_text(budget);
  return fmt::format("{} ({})", to_text(budget), exact_text(budget));
}

std::string smallest_budget_in_words(const Infeasible& infeasible, std::string_view memory) {
  const std::string budget = budget_in_words(infeasible.smallest_budget);
  if (infeasible.is_found)
    return fmt::format("its search finds a plan within {}{}{}; less may do", budget,
                       memory.empty() ? "" : " of ", memory);
  return fmt::format("the smallest budget that it could meet{}{} is {}",
                     memory.empty() ? "" : " in ", memory, budget);
}

std::string why_it_failed(const RunResult& result) {
  if (result.infeasible) {
    const Infeasible& no = *result.infeasible;
    if (no.smallest_budget.is_unlimited()) return no.why;
    return fmt::format("{}; {}", no.why, smallest_budget_in_words(no, ""));
  }
  // A cycle may wait for memory, too: then both are known.
  if (!result.cycle.empty()) return waits_in_words(result.cycle);
  return result.oom ? request_in_words(*result.oom) : std::string();
}

std::string failure_in_words(const RunResult& result) {
  const std::string why = why_it_failed(result);
  if (why.empty()) return why;
  const char* how = result.infeasible      ? "no plan"
                    : result.cycle.empty() ? "out of memory"
                                           : "deadlock";
  return fmt::format("{}: {}", how, why);
}

}  // namespace plimsoll
