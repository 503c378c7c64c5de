#include "scenario/run/claim_check.hpp"

#include "execution/find_metrics.hpp"

#include <string_view>

#include <fmt/format.h>

namespace plimsoll {

namespace {

class Claimed {
 public:
  explicit Claimed(const RunResult& result) : result_(result) {}

  ClaimCheck run() {
    const Claims& claims = result_.claims;
    const Metrics& measured = result_.metrics;
    if (claims.makespan) compare("makespan", *claims.makespan, *measured.makespan);
    if (claims.period) compare("period", *claims.period, *measured.period);
    for (const auto& [id, bytes] : claims.peak)
      if (const MemoryMetrics* memory = memory_of(id))
        compare("peak of " + memory->name, bytes, memory->peak_requested);
    if (claims.energy && measured.energy) compare("energy", *claims.energy, measured.energy->total);
    if (result_.from_file) hold_to_bounds();
    return std::move(check_);
  }

 private:
  /// The result keeps bounds that hold; the plan has all that the file states.
  void hold_to_bounds() {
    const Bounds& bounds = result_.plan.bounds;
    const Metrics& measured = result_.metrics;
    if (bounds.makespan) hold("makespan", *bounds.makespan, *measured.makespan);
    if (bounds.period) hold("period", *bounds.period, *measured.period);
    if (bounds.energy && measured.energy) hold("energy", *bounds.energy, measured.energy->total);
    for (const auto& [id, bytes] : bounds.peak)
      if (const MemoryMetrics* memory = memory_of(id))
        hold("peak of " + memory->name, bytes, memory->peak_requested);
  }

  void compare(const std::string& what, const auto& claimed, const auto& measured) {
    if (claimed == measured)
      check_.held.push_back(what);
    else
      check_.differing.push_back(
          fmt::format("{}: claimed {}, measured {}", what, to_text(claimed), to_text(measured)));
  }

  void hold(const std::string& what, const auto& bound, const auto& measured) {
    if (measured < bound)
      check_.differing.push_back(
          fmt::format("{}: claimed to be at least {} in every plan, measured {}", what,
                      to_text(bound), to_text(measured)));
  }

  const MemoryMetrics* memory_of(MemoryId id) const {
    return find_memory(result_.metrics, result_.memory_names[static_cast<std::size_t>(id)]);
  }

  const RunResult& result_;
  ClaimCheck check_;
};

}  // namespace

ClaimCheck check_claims(const RunResult& result) {
  if (result.infeasible || !result.metrics.makespan) return {};
  return Claimed(result).run();
}

bool is_as_claimed(const RunResult& result) {
  if (std::string_view(status_text(result)) != "ok") return false;
  return !result.from_file || check_claims(result).differing.empty();
}

}  // namespace plimsoll
