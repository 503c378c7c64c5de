#include "report/run/training_words.hpp"

#include "base/quantity_text.hpp"
#include "report/text/style.hpp"

#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr double kSecondsPerDay = 86'400;
constexpr double kDaysPerYear = 365.25;

std::string bytes_text(double bytes) {
  if (bytes < 1e18) return to_text(Bytes{static_cast<std::int64_t>(bytes)});
  return fmt::format("{:.3g} B", bytes);
}

std::string count_text(double count) {
  return count < 1e15 ? thousands(static_cast<std::int64_t>(count)) : fmt::format("{:.3g}", count);
}

std::string pace_words(const WholeTraining& it) {
  std::string text;
  if (it.steps) {
    text = fmt::format("{} steps in {}", thousands(*it.steps), days_text(*it.days));
    if (it.energy_j) text += fmt::format(", {}", joules_text(*it.energy_j));
    text += "; ";
  }
  text += fmt::format("one step every {}", days_text(it.step_s / kSecondsPerDay));
  if (it.step_j) text += fmt::format(", {} each", joules_text(*it.step_j));
  if (it.rest) text += fmt::format(", {} at rest", to_text(*it.rest));
  return text;
}

std::string charge_words(const ChargeMetrics& it) {
  std::string text = fmt::format("{}, {} steps, {} samples on one charge", days_text(it.days),
                                 count_text(it.steps), count_text(it.samples));
  if (it.charges) text += fmt::format("; the training takes {} charges", decimal(*it.charges));
  return text;
}

std::string failure_words(const FailureMetrics& it) {
  std::string text = fmt::format("{} a day", decimal(it.per_day));
  if (it.in_all) text += fmt::format(", {} in all", decimal(*it.in_all));
  return text + fmt::format("; {} of the work is lost and done again", percent(it.repeated));
}

std::string checkpoint_words(const CheckpointMetrics& it) {
  std::string text =
      fmt::format("from checkpoints of {} on {}, one every {}; written in {}", to_text(it.bytes),
                  it.to, counted(static_cast<std::size_t>(it.every), "step"), to_text(it.write));
  if (it.write_energy) text += fmt::format(" with {}", to_text(*it.write_energy));
  text += fmt::format(", read in {}", to_text(it.read));
  if (it.read_energy) text += fmt::format(" with {}", to_text(*it.read_energy));
  text += fmt::format("; writing takes {} of the time", percent(it.time_share));
  if (it.energy_share) text += fmt::format(" and {} of the energy", percent(*it.energy_share));
  if (it.young_s)
    text += fmt::format(" (Young would write one every {}, Daly every {})",
                        days_text(*it.young_s / kSecondsPerDay),
                        days_text(*it.daly_s / kSecondsPerDay));
  return text;
}

std::string storage_words(const StorageMetrics& it) {
  std::string text = fmt::format("{} takes {} a step", it.name, bytes_text(it.written_per_step));
  if (it.written) text += fmt::format(", {} in all", bytes_text(*it.written));
  if (it.wear) text += fmt::format(", {} of its endurance", percent(*it.wear));
  if (it.lasts_days) text += fmt::format("; it lasts {}", days_text(*it.lasts_days));
  return text;
}

}  // namespace

std::string days_text(double days) {
  if (days < 2) return to_text(time_of_seconds(days * kSecondsPerDay));
  if (days < 2 * kDaysPerYear) return fmt::format("{} days", decimal(days));
  return fmt::format("{} years", decimal(days / kDaysPerYear));
}

std::string joules_text(double joules) {
  constexpr double kMostText = 1e15;  // of Energy, far within its range
  if (joules >= kMostText) return fmt::format("{:.3g} J", joules);
  return to_text(Energy{static_cast<Energy::Count>(joules * 1e21)});
}

std::vector<std::pair<std::string, std::string>> training_words(const WholeTraining& training) {
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("training", pace_words(training));
  if (training.charge) lines.emplace_back("battery", charge_words(*training.charge));
  if (training.failures) lines.emplace_back("failures", failure_words(*training.failures));
  if (training.checkpoints) lines.emplace_back("restart", checkpoint_words(*training.checkpoints));
  for (const StorageMetrics& it : training.storages)
    lines.emplace_back("storage", storage_words(it));
  return lines;
}

}  // namespace plimsoll
