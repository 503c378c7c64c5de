#include "workload/network/low_rank_adapters.hpp"

#include "base/names_hint.hpp"
#include "base/wildcard.hpp"
#include "workload/network/framework_defaults.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// So many names are searched for the nearest one.
constexpr std::size_t kMaxAdaptedNames = 2000;

}  // namespace

LowRankAdapters::LowRankAdapters(const LowRank& lora, Framework framework)
    : lora_(lora), framework_(framework), is_used_(lora.of.size(), false) {}

bool LowRankAdapters::take(const std::string& name) {
  bool found = false;
  for (std::size_t i = 0; i < lora_.of.size(); ++i)
    if (matches(lora_.of[i].value, name)) found = is_used_[i] = true;
  if (names_.size() < kMaxAdaptedNames) names_.push_back(name);
  return found;
}

std::uint32_t LowRankAdapters::add(NetworkBuilder& builder, std::uint32_t input,
                                   std::uint32_t output, const std::string& name) const {
  const std::int64_t rank = lora_.rank.value, features = builder.dims(output).back();
  const std::int64_t most = std::min(builder.dims(input).back(), features);
  if (rank > most) {
    Diagnostics diagnostics;
    diagnostics.error(lora_.rank.where, "rank " + std::to_string(rank) + " exceeds the " +
                                            std::to_string(most) + " features of `" + name +
                                            "`; expected at most these");
    diagnostics.throw_if_errors();
  }
  const OperatorRule& linear = *find_rule(kAdapted);
  const auto product = [&](std::uint32_t of, std::int64_t to, AdapterPart part,
                           const char* suffix) {
    builder.adapt(part);
    const std::uint32_t made =
        builder.apply(linear, {{"features", to}, {"bias", 0}}, {of}, name + suffix);
    builder.adapt(AdapterPart::none);
    return made;
  };
  const auto plain = [&](const char* kind, std::vector<std::uint32_t> of) {
    const OperatorRule& rule = *find_rule(kind);
    return builder.apply(rule, default_arguments(rule, framework_), std::move(of),
                         name + "/lora_" + kind);
  };
  builder.train(Trained{});
  const std::uint32_t low = product(input, rank, AdapterPart::down, "/lora_a");
  const std::uint32_t adapted =
      plain("scale", {product(low, features, AdapterPart::up, "/lora_b")});
  return plain("add", {output, adapted});
}

void LowRankAdapters::check() const {
  Diagnostics diagnostics;
  for (std::size_t i = 0; i < lora_.of.size(); ++i)
    if (!is_used_[i])
      diagnostics.error(lora_.of[i].where, "no linear layer is named `" + lora_.of[i].value + "`",
                        hint_of_names(lora_.of[i].value, names_));
  diagnostics.throw_if_errors();
}

}  // namespace plimsoll
