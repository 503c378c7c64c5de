#include "policy/parallel/state_options.hpp"

#include "platform/core/links_between.hpp"
#include "policy/interface/entry.hpp"
#include "policy/parallel/named_copies.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

void check_holds(const std::optional<Located<std::string>>& named, const Platform& platform,
                 Diagnostics& diagnostics) {
  if (!named) return;
  for (const auto id : copies_named<MemoryId>(platform.memories, named->value))
    if (platform[id].is_switch) {
      diagnostics.error(named->where,
                        fmt::format("`{}` is a switch, which holds no state", platform[id].name),
                        "expected a memory");
      return;
    }
}

class HomesOfRank {
 public:
  HomesOfRank(const StateOptions& state, const Platform& platform, const Topology& topology,
              ProcessorId device)
      : state_(state), platform_(platform), topology_(topology), device_(device) {}

  RankHomes run() {
    const MemoryId here = platform_[device_].memory;
    RankHomes homes;
    homes.memory.fill(here);
    if (state_.optimizer) {
      find_updater(homes);
      MemoryId& memory = home(homes, Home::optimizer);
      memory = home(homes, Home::updates);
      if (state_.optimizer->memory) memory = nearest(*state_.optimizer->memory);
      check_access(homes);
    }
    home(homes, Home::gradients) =
        state_.gradients ? nearest(*state_.gradients) : home(homes, Home::updates);
    if (state_.parameters) home(homes, Home::parameters) = nearest(*state_.parameters);
    check_ways(homes);
    return homes;
  }

 private:
  static MemoryId& home(RankHomes& homes, Home of) {
    return homes.memory[static_cast<std::size_t>(of)];
  }

  [[nodiscard]] std::size_t hops(MemoryId to) const {
    return links_between(platform_, topology_, platform_[device_].memory, to);
  }

  [[nodiscard]] MemoryId nearest(const Located<std::string>& named) const {
    const auto all = copies_named<MemoryId>(platform_.memories, named.value);
    return *std::ranges::min_element(all, {}, [&](MemoryId id) { return hops(id); });
  }

  void find_updater(RankHomes& homes) const {
    const auto all = updaters_of(state_, platform_);
    if (all.empty() || std::ranges::count(all, device_) > 0) return;
    const ProcessorId on = *std::ranges::min_element(
        all, {}, [&](ProcessorId id) { return hops(platform_[id].memory); });
    homes.updates_on = on;
    home(homes, Home::updates) = platform_[on].memory;
    const auto fp32 = platform_[on].compute[static_cast<std::size_t>(DType::fp32)];
    if (!fp32)
      refuse(state_.optimizer->on->where,
             fmt::format("processor `{}` states no peak rate for fp32, in which it would "
                         "update parameters",
                         platform_[on].name),
             fmt::format("expected `processors.{}.compute: {{fp32: ...}}`", platform_[on].key()));
  }

  /// Its state must come to the processor that updates.
  void check_access(const RankHomes& homes) const {
    const auto memory = homes.memory[static_cast<std::size_t>(Home::optimizer)];
    const ProcessorId on = homes.updates_on.value_or(device_);
    check_way(memory, platform_[on].memory, place_of(state_.optimizer->memory),
              fmt::format("processor `{}` cannot reach state in `{}`", platform_[on].name,
                          platform_[memory].name));
  }

  [[nodiscard]] const Location& place_of(const std::optional<Located<std::string>>& named) const {
    if (named) return named->where;
    return state_.optimizer ? state_.optimizer->where : state_.where;
  }

  void check_way(MemoryId a, MemoryId b, const Location& where, const std::string& what) const {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      if (topology_.route(from, to) == nullptr)
        refuse(where, fmt::format("{}: no links lead from `{}` to `{}`", what, platform_[from].name,
                                  platform_[to].name));
  }

  /// Parameters and gradients come and go between where they live, where they are used, and where they
  /// are updated.
  void check_ways(const RankHomes& homes) const {
    const auto& on = state_.optimizer ? state_.optimizer->on : std::nullopt;
    const MemoryId here = platform_[device_].memory;
    const MemoryId updates = homes.memory[static_cast<std::size_t>(Home::updates)];
    const auto what = [&](const char* kind, MemoryId it) {
      return fmt::format("`{}` cannot reach {} in `{}`", platform_[device_].name, kind,
                         platform_[it].name);
    };
    check_way(here, updates, place_of(on), what("updates", updates));
    for (const auto& [kind, named, home] :
         {std::tuple("parameters", &state_.parameters, Home::parameters),
          std::tuple("gradients", &state_.gradients, Home::gradients)}) {
      const MemoryId it = homes.memory[static_cast<std::size_t>(home)];
      check_way(here, it, place_of(*named), what(kind, it));
      check_way(updates, it, place_of(*named), what(kind, it));
    }
  }

  const StateOptions& state_;
  const Platform& platform_;
  const Topology& topology_;
  const ProcessorId device_;
};

}  // namespace

Format<StateOptions> state_format() {
  using S = StateOptions;
  using O = S::Optimizer;
  const auto optimizer =
      Record<O>("state.optimizer", "State of the optimizer, and who runs it.")
          .where(&O::where)
          .optional("memory", &O::memory, located(name()),
                    "where it lives; default: the memory of the processor that updates")
          .optional("on", &O::on, located(name()),
                    "the processor that runs updates; default: the one that runs the step")
          .format();
  return Record<S>("`state`", "In which memories the state of training lives.")
      .where(&S::where)
      .optional("optimizer", &S::optimizer, optimizer,
                "{memory: NAME, on: PROCESSOR}; default: with the processor that runs the step")
      .optional("parameters", &S::parameters, located(name()),
                "a memory from which they are fetched for each unit; default: that of the "
                "processor")
      .optional("gradients", &S::gradients, located(name()),
                "a memory to which they leave once they are complete; default: that of the "
                "processor that runs updates")
      .format();
}

void check_state(const StateOptions& state, const Platform& platform, Diagnostics& diagnostics) {
  if (state.optimizer) {
    if (const auto& on = state.optimizer->on)
      check_name(*on, platform.processors, "processor", platform, diagnostics);
    if (const auto& memory = state.optimizer->memory)
      check_name(*memory, platform.memories, "memory", platform, diagnostics);
    check_holds(state.optimizer->memory, platform, diagnostics);
  }
  for (const auto* named : {&state.parameters, &state.gradients}) {
    if (*named) check_name(**named, platform.memories, "memory", platform, diagnostics);
    check_holds(*named, platform, diagnostics);
  }
}

std::vector<ProcessorId> updaters_of(const StateOptions& state, const Platform& platform) {
  if (!state.optimizer || !state.optimizer->on) return {};
  return copies_named<ProcessorId>(platform.processors, state.optimizer->on->value);
}

RankHomes homes_of(const StateOptions& state, const Platform& platform, const Topology& topology,
                   ProcessorId device) {
  return HomesOfRank(state, platform, topology, device).run();
}

AwayState away_of(const RankHomes& homes, const Platform& platform, ProcessorId device) {
  const MemoryId here = platform[device].memory;
  const auto home = [&](Home of) { return homes.memory[static_cast<std::size_t>(of)]; };
  AwayState away;
  away.parameters = home(Home::parameters) != here;
  away.gradients = home(Home::gradients) != here;
  away.optimizer = home(Home::optimizer) != here;
  away.updates = homes.updates_on.has_value();
  for (std::size_t h = 0; h < kHomes; ++h)
    away.is_at_updates[h] = homes.memory[h] == home(Home::updates);
  return away;
}

}  // namespace plimsoll
