/// Rows of a report that say the same of parts of other names: ranks of a mesh mostly do.
#pragma once

#include "report/text/style.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace plimsoll {

/// A row that is told, and how many others say the same.
template <class Row>
struct AlikeRows {
  const Row* first;
  std::size_t others = 0;

  /// "hbm0", or "hbm0, like 7 others".
  [[nodiscard]] std::string name() const {
    if (others == 0) return first->name;
    return first->name + ", like " + counted(others, "other");
  }
  /// That before a verb.
  [[nodiscard]] std::string subject() const { return others == 0 ? name() : name() + ','; }
};

/// Groups of rows that `text` does not tell apart, each where its first row was; each row by itself where
/// there are no more than `few`. O(rows log rows).
template <class Row, class Text>
std::vector<AlikeRows<Row>> alike(const std::vector<const Row*>& rows, std::size_t few, Text text) {
  std::vector<AlikeRows<Row>> groups;
  std::map<std::string, std::size_t> group_of;
  for (const Row* row : rows) {
    if (rows.size() > few) {
      const auto [group, is_new] = group_of.emplace(text(*row), groups.size());
      if (!is_new) {
        ++groups[group->second].others;
        continue;
      }
    }
    groups.push_back({row});
  }
  return groups;
}

/// How many rows the groups beyond the first `told` stand for.
template <class Row>
std::size_t rows_beyond(const std::vector<AlikeRows<Row>>& groups, std::size_t told) {
  std::size_t rows = 0;
  for (std::size_t g = told; g < groups.size(); ++g) rows += 1 + groups[g].others;
  return rows;
}

}  // namespace plimsoll
