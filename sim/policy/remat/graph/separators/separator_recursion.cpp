#include "policy/remat/graph/separators/separator_recursion.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class Recursion {
 public:
  Recursion(const std::vector<RunUnit>& units, const SeparatorTree& separators, std::size_t most,
            const Work& work)
      : units_(units),
        separators_(separators),
        most_(most),
        work_(work),
        has_run_(units.size(), false),
        seen_in_(units.size(), 0) {}

  std::optional<std::vector<std::uint32_t>> run() {
    std::vector<bool> is_needed(units_.size(), false);
    for (const RunUnit& unit : units_)
      for (const std::uint32_t needed : unit.needs) is_needed[needed] = true;
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit)
      if (!is_needed[unit]) wanted.push_back(unit);
    if (!units_.empty() && !deliver(0, wanted)) return std::nullopt;
    return std::move(sequence_);
  }

 private:
  using Units = std::vector<std::uint32_t>;

  [[nodiscard]] bool is_there(std::uint32_t unit) const {
    return units_[unit].runs_once && has_run_[unit];
  }

  [[nodiscard]] Units in_part(const Units& units, std::uint32_t part) const {
    Units in;
    for (const std::uint32_t unit : units)
      if (separators_.is_in(unit, part) && !is_there(unit)) in.push_back(unit);
    return in;
  }

  /// Of the part's separator, what those need, directly or not, without what is outside of it.
  Units needed_of_separator(std::uint32_t part, const Units& wanted) {
    ++visit_;
    Units waiting = wanted, needed;
    for (const std::uint32_t unit : wanted) seen_in_[unit] = visit_;
    while (!waiting.empty()) {
      const std::uint32_t unit = waiting.back();
      waiting.pop_back();
      work_.add(units_[unit].needs.size() + 1);
      if (separators_.of_vertex[unit] == part) needed.push_back(unit);
      for (const std::uint32_t of : units_[unit].needs) {
        if (seen_in_[of] == visit_ || !separators_.is_in(of, part) || is_there(of)) continue;
        seen_in_[of] = visit_;
        waiting.push_back(of);
      }
    }
    std::ranges::sort(needed);
    return needed;
  }

  /// Whether it ends with no more runs than there may be.
  bool deliver(std::uint32_t part, const Units& wanted) {
    if (wanted.empty()) return true;
    for (const std::uint32_t unit : needed_of_separator(part, wanted)) {
      if (is_there(unit)) continue;
      if (!deliver_below(part, units_[unit].needs)) return false;
      if (sequence_.size() == most_) return false;
      sequence_.push_back(unit);
      has_run_[unit] = true;
    }
    return deliver_below(part, wanted);
  }

  bool deliver_below(std::uint32_t part, const Units& wanted) {
    for (const std::uint32_t child : separators_.parts[part].children)
      if (!deliver(child, in_part(wanted, child))) return false;
    return true;
  }

  const std::vector<RunUnit>& units_;
  const SeparatorTree& separators_;
  const std::size_t most_;
  const Work& work_;
  std::vector<bool> has_run_;
  std::vector<std::uint64_t> seen_in_;  ///< by unit
  std::uint64_t visit_ = 0;
  std::vector<std::uint32_t> sequence_;
};

}  // namespace

std::optional<std::vector<std::uint32_t>> separator_recursion(const std::vector<RunUnit>& units,
                                                              const SeparatorTree& separators,
                                                              std::size_t most, const Work& work) {
  return Recursion(units, separators, most, work).run();
}

UndirectedGraph undirected(const std::vector<RunUnit>& units) {
  UndirectedGraph graph(units.size());
  for (std::uint32_t unit = 0; unit < units.size(); ++unit)
    for (const std::uint32_t needed : units[unit].needs) {
      graph[unit].push_back(needed);
      graph[needed].push_back(unit);
    }
  for (std::vector<std::uint32_t>& neighbours : graph) std::ranges::sort(neighbours);
  return graph;
}

}  // namespace plimsoll
