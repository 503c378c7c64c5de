#include "platform/file/platform_contradictions.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMostCounted = std::numeric_limits<std::int64_t>::max() - 1;

template <class States>
Wide active(const std::optional<States>& power) {
  return power ? power->active.count() : 0;
}

/// FLOP/s x aJ/FLOP = 1e-18 W, of the fastest format.
Wide power_of_flops(const Processor& processor) {
  if (!processor.energy_per_flop) return 0;
  Wide rate = 0;
  for (const auto& compute : processor.compute) {
    if (compute && !compute->is_unlimited()) rate = std::max(rate, Wide{compute->count()});
  }
  return rate * processor.energy_per_flop->count() / 1'000'000'000;
}

Wide active(const Processor& processor) {
  const Wide most = active(processor.power);
  return processor.power_cap ? std::min(most, Wide{processor.power_cap->count()}) : most;
}

/// Everything at work at once, in nanowatts.
Power implied_power(const Platform& platform) {
  Wide sum = 0;
  for (const Memory& memory : platform.memories) sum += active(memory.power);
  for (const Link& link : platform.links) sum += active(link.power);
  for (const Processor& p : platform.processors) sum += active(p) + power_of_flops(p);
  return Power(static_cast<std::int64_t>(std::min(sum, kMostCounted)));
}

class Warner {
 public:
  Warner(const Platform& platform, const PlacesOfParts& places, Diagnostics& diagnostics)
      : platform_(platform), places_(places), diagnostics_(diagnostics) {}

  void warn() {
    check_power();
    for (std::size_t i = 0; i < platform_.memories.size(); ++i) {
      check_states("memories", platform_.memories[i], places_.memories[i]);
    }
    for (std::size_t i = 0; i < platform_.processors.size(); ++i) {
      check_states("processors", platform_.processors[i], places_.processors[i]);
      check_details(platform_.processors[i], places_.processors[i]);
      check_formats(platform_.processors[i], places_.processors[i]);
      check_collectives(platform_.processors[i], places_.processors[i]);
    }
    for (std::size_t i = 0; i < platform_.links.size(); ++i) {
      check_states("links", platform_.links[i], places_.links[i]);
      check_link(platform_.links[i], places_.links[i]);
    }
  }

 private:
  /// Copies of a part have one place.
  [[nodiscard]] bool is_first(const char* check, const Location& where) {
    return seen_.emplace(check, where.line, where.column).second;
  }

  void check_power() {
    const Power implied = implied_power(platform_);
    if (platform_.power_limit && implied > *platform_.power_limit) {
      diagnostics_.warning(places_.power_limit,
                           fmt::format("all parts at work draw {}, above the power_limit of {}",
                                       to_text(implied), to_text(*platform_.power_limit)));
    }
    if (platform_.battery && platform_.battery->max_power &&
        implied > *platform_.battery->max_power) {
      diagnostics_.warning(places_.power_limit,
                           fmt::format("all parts at work draw {}, above the battery's max_power "
                                       "of {}",
                                       to_text(implied), to_text(*platform_.battery->max_power)));
    }
  }

  template <class Part>
  void check_states(const char* kind, const Part& part, const Location& where) {
    if (!part.power || part.power->idle <= part.power->active || !is_first(kind, where)) return;
    diagnostics_.warning(
        where, fmt::format("{}.{} draws more when idle ({}) than when active ({})", kind, part.name,
                           to_text(part.power->idle), to_text(part.power->active)));
  }

  /// What a processor draws while it waits is at most its active power, and in sleep its idle one.
  void check_details(const Processor& it, const Location& where) {
    if (!it.power) return;
    const auto check = [&](const std::optional<Power>& less, const char* state, Power more,
                           const char* than) {
      if (less && *less > more && is_first(state, where))
        diagnostics_.warning(where,
                             fmt::format("processors.{}.power.{} ({}) is more than its {} "
                                         "power ({})",
                                         it.key(), state, to_text(*less), than, to_text(more)));
    };
    check(it.power->memory, "memory", it.power->active, "active");
    check(it.power->launch, "launch", it.power->active, "active");
    check(it.power->sleep, "sleep", it.power->idle, "idle");
  }

  void check_formats(const Processor& processor, const Location& where) {
    const auto& wide = processor.compute[static_cast<std::size_t>(DType::fp64)];
    const auto& narrow = processor.compute[static_cast<std::size_t>(DType::fp32)];
    if (!wide || !narrow || *wide <= *narrow || !is_first("formats", where)) return;
    diagnostics_.warning(where,
                         fmt::format("processors.{} is faster in fp64 ({}) than in fp32 ({})",
                                     processor.key(), to_text(*wide), to_text(*narrow)));
  }

  /// They read and write the processor's memory.
  void check_collectives(const Processor& processor, const Location& where) {
    const Memory& memory = platform_[processor.memory];
    const ByteRate most = std::max(memory.read.bandwidth, memory.write.bandwidth);
    const ByteRate rate = processor.collectives.memory;
    if (rate.is_unlimited() || rate <= most || !is_first("collectives", where)) return;
    diagnostics_.warning(
        where, fmt::format("processors.{}.collectives.memory of {} is never reached: `{}` takes {}",
                           processor.key(), to_text(rate), memory.name, to_text(most)));
  }

  void check_link(const Link& link, const Location& where) {
    for (const std::size_t way : {std::size_t{0}, std::size_t{1}}) {
      const Memory& from = platform_[link.between[way]];
      const Memory& to = platform_[link.between[1 - way]];
      const bool by_read = from.read.bandwidth <= to.write.bandwidth;
      const ByteRate most = by_read ? from.read.bandwidth : to.write.bandwidth;
      const ByteRate rate = link.bandwidth[way];
      if (rate.is_unlimited() || rate <= most || !is_first("bandwidth", where)) continue;
      diagnostics_.warning(
          where, fmt::format("links.{}.bandwidth of {} is never reached: {} `{}` takes {}",
                             link.name, to_text(rate), by_read ? "reading" : "writing",
                             by_read ? from.name : to.name, to_text(most)));
    }
  }

  const Platform& platform_;
  const PlacesOfParts& places_;
  Diagnostics& diagnostics_;
  std::set<std::tuple<std::string, int, int>> seen_;
};

}  // namespace

void warn_of_contradictions(const Platform& platform, const PlacesOfParts& places,
                            Diagnostics& diagnostics) {
  Warner(platform, places, diagnostics).warn();
}

}  // namespace plimsoll
