#include "policy/pipeline/parameters/slot_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

Format<SlotChoice> words_format() {
  return one_of<SlotChoice>({{"none", SlotChoice::none()}, {"all", SlotChoice{}}});
}

/// A word, or a share of at most all.
Format<SlotChoice> words_or_share(const Format<SlotChoice>& words) {
  const Format<Ratio> share = fraction();
  Shape shape;
  shape.kind = Shape::Kind::string;
  shape.title =
      fmt::format("{} or a share of the microbatches such as `50 %`", expected(words.shape));
  const auto read = [shape, words, share](const Node& node, Diagnostics& diagnostics) {
    Diagnostics ignored;
    if (const auto word = words.read(node, ignored)) return word;
    if (const auto part = share.read(node, ignored); part && *part <= kWhole)
      return std::optional(SlotChoice{{}, *part});
    diagnostics.error(node.where(),
                      fmt::format("found {}; expected {}", node.describe(), shape.title));
    return std::optional<SlotChoice>{};
  };
  return {read, shape};
}

}  // namespace

bool SlotChoice::takes(std::uint32_t slot, std::uint32_t microbatch) const {
  if (!slots.empty() && std::ranges::find(slots, std::int64_t{slot}) == slots.end()) return false;
  const auto taken_of_first = [&](std::int64_t microbatches) {
    return microbatches * share.count() / kWhole.count();
  };
  return taken_of_first(std::int64_t{microbatch} + 1) > taken_of_first(microbatch);
}

Format<SlotChoice> slot_list_format() {
  return mapped<std::vector<std::int64_t>, SlotChoice>(
      list_of(integer(0, 100'000'000), 1), [](std::vector<std::int64_t> slots) {
        return SlotChoice{std::move(slots), kWhole};
      });
}

Format<SlotChoice> offload_format() {
  return either(words_or_share(words_format()), slot_list_format());
}

}  // namespace plimsoll
