/// Names of the parts of a workload or platform: from id to name and back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll {

/// Several parts may share a name: which of them is told by their order. Keeps views of the names.
class PlanNames {
 public:
  using Entry = std::pair<std::string_view, std::uint32_t>;  ///< a name and its index

  /// O(parts log parts). `parts` outlives this.
  template <class Part>
  explicit PlanNames(const std::vector<Part>& parts) {
    entries_.reserve(parts.size());
    for (const Part& part : parts)
      entries_.emplace_back(part.name, static_cast<std::uint32_t>(entries_.size()));
    sort();
  }

  /// All parts of this name, in their order. O(log parts).
  [[nodiscard]] std::span<const Entry> find(std::string_view name) const;
  /// Which of several parts of its name a part is; nothing where it is the only one. O(log parts).
  [[nodiscard]] std::optional<std::uint32_t> occurrence(std::string_view name,
                                                        std::uint32_t index) const;
  /// Every name, for suggestions.
  [[nodiscard]] std::vector<std::string> all() const;

 private:
  void sort();

  std::vector<Entry> entries_;
};

}  // namespace plimsoll
