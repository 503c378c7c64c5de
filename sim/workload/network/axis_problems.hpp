/// What is wrong with dividing a network along an axis, each thing said once however many layers have it.
#pragma once

#include "base/diagnostic.hpp"

#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

class AxisProblems {
 public:
  /// Enough of them to be read.
  static constexpr std::size_t kMost = 8;

  /// `where` the axis is given; must outlive this. What comes after `most` is left out.
  explicit AxisProblems(const Location& where,
                        std::size_t most = std::numeric_limits<std::size_t>::max())
      : where_(where), most_(most) {}

  void add(std::string message, std::string hint = {}) {
    if (told_.insert(message).second && all_.size() < most_)
      all_.push_back({Severity::error, where_, std::move(message), std::move(hint)});
  }

  [[nodiscard]] bool is_empty() const { return all_.empty(); }

  /// Throws InputError.
  void throw_if_any() {
    if (!all_.empty()) throw InputError(std::move(all_));
  }

 private:
  const Location& where_;
  const std::size_t most_;
  std::set<std::string> told_;
  std::vector<Diagnostic> all_;
};

}  // namespace plimsoll
