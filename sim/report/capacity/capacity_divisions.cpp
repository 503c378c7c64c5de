#include "report/capacity/capacity_divisions.hpp"

#include "report/text/style.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostReasons = 6;

using Configurations = std::vector<const Configuration*>;

struct Reason {
  std::string why;
  std::size_t divisions = 0;  ///< of all configurations together
  Configurations of;
};

struct Fitting {
  std::size_t divisions = 0;  ///< of each configuration
  Configurations of;
};

/// Of `all` the element whose `key` is `value`, put at the end where there is none.
template <class Group, class Key>
Group& group_of(std::vector<Group>& all, Key Group::*key, const Key& value) {
  const auto found = std::ranges::find(all, value, key);
  if (found != all.end()) return *found;
  Group& added = all.emplace_back();
  added.*key = value;
  return added;
}

class Divisions {
 public:
  Divisions(const std::vector<Configuration>& configurations, const NamesOf& names_of)
      : names_of_(names_of) {
    for (const Configuration& it : configurations)
      if (it.axes) add(it);
    std::ranges::stable_sort(reasons_, std::ranges::greater{}, &Reason::divisions);
  }

  [[nodiscard]] std::vector<std::string> lines() const {
    if (divided_ == 0) return {};
    std::vector<std::string> lines{fitting_text()};
    for (const Reason& reason : reasons_) {
      if (lines.size() > kMostReasons) break;
      lines.push_back(fmt::format("left out{}, {}: {}", names_in_words(reason.of),
                                  counted(reason.divisions, "division"), reason.why));
    }
    if (reasons_.size() > kMostReasons)
      lines.push_back(fmt::format("left out for {}: {}",
                                  counted(reasons_.size() - kMostReasons, "other reason"),
                                  counted(divisions_of_others(), "division")));
    return lines;
  }

 private:
  void add(const Configuration& it) {
    ++divided_;
    std::size_t fit = 0;
    for (const TriedSplit& split : it.splits) {
      if (split.verdict != Verdict::does_not_apply) {
        ++fit;
        continue;
      }
      Reason& reason = group_of(reasons_, &Reason::why, split.why);
      ++reason.divisions;
      if (reason.of.empty() || reason.of.back() != &it) reason.of.push_back(&it);
    }
    group_of(fitting_, &Fitting::divisions, fit).of.push_back(&it);
  }

  [[nodiscard]] std::string fitting_text() const {
    if (fitting_.size() == 1)
      return fmt::format("divided by: the fastest of the {} that fit the processors",
                         counted(fitting_.front().divisions, "division"));
    std::vector<std::string> parts;
    for (const Fitting& it : fitting_)
      parts.push_back(fmt::format("{}{}", thousands(static_cast<std::int64_t>(it.divisions)),
                                  names_in_words(it.of)));
    return fmt::format("divided by: the fastest of the divisions that fit the processors, {}",
                       fmt::join(parts, "; "));
  }

  /// " of dgx-a100 with none"; nothing where it is all.
  [[nodiscard]] std::string names_in_words(const Configurations& some) const {
    return some.size() == divided_ ? "" : " of " + names_of_(some);
  }

  [[nodiscard]] std::size_t divisions_of_others() const {
    std::size_t divisions = 0;
    for (std::size_t r = kMostReasons; r < reasons_.size(); ++r) divisions += reasons_[r].divisions;
    return divisions;
  }

  const NamesOf& names_of_;
  std::size_t divided_ = 0;  ///< configurations
  std::vector<Fitting> fitting_;
  std::vector<Reason> reasons_;
};

}  // namespace

std::vector<std::string> division_lines(const std::vector<Configuration>& configurations,
                                        const NamesOf& names_of) {
  return Divisions(configurations, names_of).lines();
}

}  // namespace plimsoll
