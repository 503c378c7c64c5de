#include "platform/core/break_even.hpp"

#include "platform/core/home_memory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMostIntensity = std::numeric_limits<std::int64_t>::max();

template <class T>
T saturated(Wide count) {
  return T(static_cast<std::int64_t>(std::min(count, kMostIntensity)));
}

Wide rounded_quotient(Wide numerator, Wide denominator) {
  return (numerator + denominator / 2) / denominator;
}

/// Thousandths of a FLOP per byte that fit in the time of a byte; 0 at an unlimited bandwidth.
Wide flops_while_moving(FlopRate rate, ByteRate bandwidth) {
  if (bandwidth.is_unlimited()) return 0;
  return rounded_quotient(Wide{rate.count()} * 1000, bandwidth.count());
}

/// nW / (1/s) = 1e9 aJ.
Wide attojoules_per(Power power, std::int64_t rate) {
  return rounded_quotient(Wide{power.count()} * 1'000'000'000, rate);
}

Power above_idle(const std::optional<PowerStates>& power) {
  return power ? power->active - power->idle : Power{};
}

/// Of a step that gets longer by the time of a FLOP: everything idles for longer.
std::optional<Wide> energy_per_flop(const Platform& platform, const Processor& processor,
                                    FlopRate rate) {
  if (!processor.power && !processor.energy_per_flop) return std::nullopt;
  const Power power = platform.idle_power() + above_idle(processor.power) +
                      above_idle(platform[processor.memory].power);
  const Wide own = processor.energy_per_flop ? processor.energy_per_flop->count() : 0;
  return own + attojoules_per(power, rate.count());
}

/// Picoseconds of erasing that a byte takes on its way to a storage, in thousandths; all of a block is
/// written.
Wide erasing_per_byte(const Memory& storage) {
  if (storage.erase_block == Bytes{}) return 0;
  return rounded_quotient(Wide{storage.erase_time.count()} * 1000, storage.erase_block.count());
}

/// What draws `power` while a byte takes its way, and `erasing`, as above, before it.
Wide energy_at_work(Power power, const Route& route, Wide erasing) {
  // nW x ps / 1000 = 1e-24 J, of which an attojoule has a million.
  const Wide of_erasing = rounded_quotient(Wide{power.count()} * erasing, 1'000'000);
  return of_erasing +
         (route.bandwidth.is_unlimited() ? 0 : attojoules_per(power, route.bandwidth.count()));
}

/// Of the storage's `access` and the links of the way there or back; nothing where none is known.
std::optional<Wide> energy_per_byte(const Platform& platform, const Memory& storage,
                                    const AccessCost& access, const Route& route, Wide erasing) {
  Wide sum = 0;
  bool known = false;
  const auto add = [&](const std::optional<EnergyPerByte>& energy,
                       const std::optional<PowerStates>& power) {
    if (energy) {
      sum += energy->count();
    } else if (power && (erasing > 0 || !route.bandwidth.is_unlimited())) {
      sum += energy_at_work(above_idle(power), route, erasing);
    } else {
      return;
    }
    known = true;
  };
  add(access.energy, storage.power);
  for (const Hop& hop : route.hops) add(platform[hop.link].energy, platform[hop.link].power);
  return known ? std::optional(sum) : std::nullopt;
}

/// Thousandths of a FLOP per byte.
Wide flops_while_erasing(FlopRate rate, const Memory& storage) {
  return rounded_quotient(Wide{rate.count()} * erasing_per_byte(storage), 1'000'000'000'000);
}

std::optional<FlopsPerByte> energy_break_even(const Platform& platform, const BreakEven& row,
                                              FlopRate rate, const Route& out, const Route& in) {
  const Memory& storage = platform[row.storage];
  const auto flop = energy_per_flop(platform, platform[row.processor], rate);
  const auto write =
      energy_per_byte(platform, storage, storage.write, out, erasing_per_byte(storage));
  const auto read = energy_per_byte(platform, storage, storage.read, in, 0);
  if (!flop || *flop == 0 || !write || !read) return std::nullopt;
  return saturated<FlopsPerByte>(rounded_quotient((*write + *read) * 1000, *flop));
}

BreakEven compare(const Platform& platform, BreakEven row, FlopRate rate, const Route& out,
                  const Route& in) {
  row.time = saturated<FlopsPerByte>(flops_while_moving(rate, out.bandwidth) +
                                     flops_while_moving(rate, in.bandwidth) +
                                     flops_while_erasing(rate, platform[row.storage]));
  const Wide latency = Wide{out.latency.count()} + in.latency.count();
  row.per_copy = saturated<Flops>(latency * rate.count() / 1'000'000'000'000);
  row.energy = energy_break_even(platform, row, rate, out, in);
  return row;
}

}  // namespace

std::string to_text(FlopsPerByte flops) {
  if (flops.is_unlimited()) return "unlimited";
  const std::int64_t count = flops.count();
  if (count >= 99'950) return fmt::format("{} FLOP/B", count / 1000 + (count % 1000 + 500) / 1000);
  if (count >= 10'000) {
    const std::int64_t tenths = (count + 50) / 100;
    return fmt::format("{}.{} FLOP/B", tenths / 10, tenths % 10);
  }
  return fmt::format("{}.{:03} FLOP/B", count / 1000, count % 1000);
}

std::vector<BreakEven> break_even_of(const Platform& platform, const Topology& topology,
                                     ProcessorId processor, DType dtype, std::size_t most) {
  std::vector<BreakEven> rows;
  const MemoryId memory = platform[processor].memory;
  const auto rate = platform[processor].compute[static_cast<std::size_t>(dtype)];
  if (!rate || rate->is_unlimited()) return rows;
  const std::vector<bool> is_home = homes_of(platform);
  for (std::uint32_t m = 0; m < platform.memories.size() && rows.size() < most; ++m) {
    const MemoryId storage{m};
    if (is_home[m] || platform[storage].is_switch) continue;
    const Route* out = topology.route(memory, storage);
    const Route* in = topology.route(storage, memory);
    if (out == nullptr || in == nullptr) continue;
    const BreakEven row{processor, memory, storage, dtype, {}, {}, {}};
    rows.push_back(compare(platform, row, *rate, *out, *in));
  }
  return rows;
}

std::vector<BreakEven> break_even(const Platform& platform, const Topology& topology, DType dtype) {
  std::vector<BreakEven> rows;
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
    for (BreakEven& row : break_even_of(platform, topology, ProcessorId{p}, dtype))
      rows.push_back(std::move(row));
  return rows;
}

}  // namespace plimsoll
