#include "scenario/capacity/splits.hpp"

#include "base/format.hpp"
#include "policy/parallel/mesh_options.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kRest = "data";
constexpr std::size_t kMostChoices = 1'000;
constexpr std::int64_t kLargestAxis = 1'000'000'000;

std::optional<std::int64_t> size_in(const Node& node) {
  Diagnostics told_by_the_mesh;
  return integer(1, kLargestAxis).read(node, told_by_the_mesh);
}

struct Choice {
  const char* axis;
  std::vector<Node> sizes;
};

/// Of the axes that have lists or numbers.
std::vector<Choice> choices_in(const Node& parallel) {
  std::vector<Choice> choices;
  std::size_t count = 1;
  for (const NamedAxis& it : kNamedAxes) {
    const char* axis = it.name;
    const Node* sizes = parallel.find(axis);
    if (sizes == nullptr) continue;
    choices.push_back({axis, sizes->is_sequence() ? sizes->items() : std::vector<Node>{*sizes}});
    if (choices.back().sizes.empty())
      refuse(sizes->where(), fmt::format("`{}` has an empty list; expected sizes to try", axis));
    count *= choices.back().sizes.size();
    if (count > kMostChoices)
      refuse(parallel.where(),
             fmt::format("more than {} choices of sizes; expected fewer", kMostChoices));
  }
  return choices;
}

class Splits {
 public:
  Splits(const Node& parallel, std::int64_t processors)
      : parallel_(parallel), processors_(processors), choices_(choices_in(parallel)) {}

  std::vector<Split> run() {
    choose(0, {parallel_, {}}, 1);
    return std::move(found_);
  }

 private:
  void choose(std::size_t c, const Split& so_far, std::int64_t ranks) {
    if (c == choices_.size()) return add(so_far, ranks);
    for (const Node& node : choices_[c].sizes) {
      Split next = so_far;
      set(next, choices_[c].axis, node);
      const auto size = size_in(node);
      // What is no size counts as one: the reader of the mesh says what is wrong with it.
      const std::int64_t with_it = ranks * size.value_or(1);
      if (with_it > processors_) continue;
      if (size && *size > 1) next.axes.emplace_back(choices_[c].axis, *size);
      choose(c + 1, next, with_it);
    }
  }

  void add(Split split, std::int64_t ranks) {
    if (processors_ % ranks != 0) return;
    const std::int64_t rest = processors_ / ranks;
    if (parallel_.find(kRest) != nullptr) {
      if (rest > 1) return;
    } else if (rest > 1) {
      set(split, kRest, parse_value(fmt::format("{}", rest), parallel_.where().origin));
      split.axes.emplace_back(kRest, rest);
    }
    without_idle_switches(split);
    found_.push_back(std::move(split));
  }

  /// Without a tensor axis, `sequence` and `overlap` are about nothing; where another choice has one, that is
  /// no mistake.
  void without_idle_switches(Split& split) const {
    const Node* sizes = parallel_.find("tensor");
    const bool varies = sizes != nullptr && sizes->is_sequence();
    if (!varies || split.has("tensor")) return;
    switch_off_without_tensor(split.parallel);
  }

  static void set(Split& split, const char* axis, const Node& size) {
    Diagnostics diagnostics;
    split.parallel.set(axis, size, diagnostics);
    diagnostics.throw_if_errors();
  }

  const Node& parallel_;
  const std::int64_t processors_;
  const std::vector<Choice> choices_;
  std::vector<Split> found_;
};

}  // namespace

bool Split::has(std::string_view axis) const {
  return std::ranges::count(axes, axis, &Axes::value_type::first) > 0;
}

std::string to_text(const Split::Axes& axes) {
  if (axes.empty()) return "none";
  std::string text;
  for (const auto& [axis, size] : axes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis, size);
  return text;
}

std::vector<Split> splits_of(const Node& parallel, const Platform& platform) {
  if (!parallel.is_mapping()) return {{parallel, {}}};
  const Node* devices = parallel.find("devices");
  const std::size_t processors = devices != nullptr && devices->is_sequence()
                                     ? devices->items().size()
                                     : platform.processors.size();
  std::vector<Split> splits = Splits(parallel, static_cast<std::int64_t>(processors)).run();
  if (splits.empty())
    refuse(parallel.where(),
           fmt::format("no choice of these sizes divides the {} processors of `{}`", processors,
                       platform.name),
           parallel.find(kRest) == nullptr ? "" : "without `data` it has what the others leave");
  return splits;
}

}  // namespace plimsoll
