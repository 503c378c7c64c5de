#include "scenario/run/unknown_energy.hpp"

#include "base/dense_id.hpp"
#include "platform/core/copy_energy.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostUnknownNamed = 4;

class UnknownEnergy {
 public:
  UnknownEnergy(const Plan& plan, const Platform& platform, const Topology& topology)
      : plan_(plan),
        platform_(platform),
        topology_(topology),
        kinds_(platform.memories.size(), Kind::storage) {
    for (const Processor& it : platform.processors)
      for (const MemoryId memory : it.reaches) kinds_[index(memory)] = Kind::reached;
    for (const Processor& it : platform.processors) kinds_[index(it.memory)] = Kind::home;
  }

  std::vector<MemoryId> memories() {
    for (const Step& step : plan_.steps)
      if (step.kind == StepKind::copy) judge_copy(plan_[step.lane]);
    for (const Buffer& buffer : plan_.buffers)
      if (kinds_[index(buffer.memory)] == Kind::reached) judge_reached(buffer.memory);
    return unknown_;
  }

 private:
  /// `known` and `told` are those about which all is clear.
  enum class Kind : std::uint8_t { home, storage, reached, known, told };

  void judge_copy(const Lane& lane) {
    const bool leaves = kinds_[index(lane.from)] == Kind::home;
    const MemoryId home = leaves ? lane.from : lane.to;
    const MemoryId storage = leaves ? lane.to : lane.from;
    if (kinds_[index(home)] != Kind::home || kinds_[index(storage)] != Kind::storage) return;
    settle(storage, states_copy_energy(platform_, topology_, home, storage));
  }

  void judge_reached(MemoryId memory) {
    const Memory& its = platform_[memory];
    settle(memory, its.power || (its.read.energy && its.write.energy));
  }

  void settle(MemoryId memory, bool known) {
    kinds_[index(memory)] = known ? Kind::known : Kind::told;
    if (!known) unknown_.push_back(memory);
  }

  const Plan& plan_;
  const Platform& platform_;
  const Topology& topology_;
  std::vector<Kind> kinds_;  ///< by memory
  std::vector<MemoryId> unknown_;
};

}  // namespace

std::string unknown_use_in_words(const std::string& names, const Memory& first) {
  return fmt::format(
      "what using {} takes, which the platform does not state (`memories.{}.power`, or an `energy` "
      "per byte)",
      names, first.key());
}

std::string note_on_unknown_energy(const Plan& plan, const Platform& platform,
                                   const Topology& topology) {
  const std::vector<MemoryId> unknown = UnknownEnergy(plan, platform, topology).memories();
  if (unknown.empty()) return "";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(unknown.size(), kMostUnknownNamed); ++i)
    names.push_back(fmt::format("`{}`", platform[unknown[i]].name));
  if (unknown.size() > kMostUnknownNamed) names.emplace_back("others");
  return "the energy leaves out " +
         unknown_use_in_words(fmt::format("{}", fmt::join(names, ", ")), platform[unknown.front()]);
}

std::string note_on_unknown_operators(const Plan& plan, const Workload& workload,
                                      const Platform& platform) {
  std::vector<bool> is_unknown(workload.operators.size(), false);
  const Processor* unit = nullptr;
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::compute) continue;
    const Processor& its = platform[plan[step.lane].processor];
    if (!its.energy_per_flop || states_energy(workload[step.op], its)) continue;
    is_unknown[index(step.op)] = true;
    if (unit == nullptr) unit = &its;
  }
  const auto first = std::ranges::find(is_unknown, true);
  if (first == is_unknown.end()) return "";
  const auto others = std::count(first + 1, is_unknown.end(), true);
  const auto& name = workload.operators[static_cast<std::size_t>(first - is_unknown.begin())].name;
  return fmt::format(
      "the energy leaves out what `{}`{} on `{}`: a time is stated and no `flops`, and "
      "`processors.{}` states an energy per FLOP",
      name, others == 0 ? " takes" : fmt::format(" and {} other operators take", others),
      unit->name, unit->key());
}

}  // namespace plimsoll
