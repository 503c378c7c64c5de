#include "plan/build/collective_choice.hpp"

#include <algorithm>
#include <bit>

namespace plimsoll {

namespace {

/// The member to which the round leads from member i, in which member 0 sends to member `to`.
std::uint32_t led_to(std::span<const RankLevel> levels, AllReduce algorithm, std::uint32_t i,
                     std::uint32_t to) {
  std::uint32_t member = 0, stride = 1;
  for (const RankLevel& level : levels) {
    const std::uint32_t a = i / stride % level.size, b = to / stride % level.size;
    member += (algorithm == AllReduce::tree ? a ^ b : (a + b) % level.size) * stride;
    stride *= level.size;
  }
  return member;
}

std::uint32_t product(std::span<const RankLevel> levels) {
  std::uint32_t members = 1;
  for (const RankLevel& level : levels) members *= level.size;
  return members;
}

/// What each direction of a link carries in a round.
class LinkLoads {
 public:
  explicit LinkLoads(const Platform& platform)
      : platform_(platform), loads_(2 * platform.links.size()) {}

  void add(const Route& way, Bytes bytes) {
    const Time send = way.latency + transfer_time(bytes, way.bandwidth);
    longest_ = std::max(longest_, send);
    for (const Hop& hop : way.hops) {
      const Link& link = platform_[hop.link];
      const bool half = link.duplex == Duplex::half;
      Time& load = loads_[2 * index(hop.link) + (half ? 0u : hop.direction)];
      load += link.sharing == Sharing::fifo ? send
                                            : transfer_time(bytes, link.bandwidth[hop.direction]);
      longest_ = std::max(longest_, load);
    }
  }

  [[nodiscard]] Time longest() const { return longest_; }

 private:
  const Platform& platform_;
  std::vector<Time> loads_;
  Time longest_;
};

}  // namespace

CollectiveChoice::CollectiveChoice(const Spreading& spreading, const Platform& platform)
    : spreading_(spreading), platform_(platform), openings_(platform) {}

CollectiveForm CollectiveChoice::of(const Collective& collective,
                                    std::span<const MemoryId> memories, Bytes bytes) {
  const Key key{collective.kind, collective.axis, collective.of_experts, memories.front(), bytes};
  const auto [known, is_new] = chosen_.try_emplace(key);
  if (!is_new) return known->second;
  std::optional<Time> least;
  for (const CollectiveForm& form : forms_of(collective)) {
    const std::optional<Time> time = time_of(form, collective, memories, bytes);
    if (!time || (least && *least <= *time)) continue;
    least = time;
    known->second = form;
  }
  return known->second;
}

std::vector<CollectiveForm> CollectiveChoice::forms_of(const Collective& collective) const {
  std::vector<CollectiveForm> forms{{}};
  const std::vector<RankLevel> levels = levels_of(spreading_.axes, collective, forms.front());
  if (levels.empty() || is_pass(collective.kind)) return forms;
  if (std::ranges::all_of(levels, [](const RankLevel& it) { return std::has_single_bit(it.size); }))
    forms.push_back({AllReduce::tree, 0, 1});
  if (collective.kind == CollectiveKind::all_to_all) return forms;
  std::uint32_t stride = 1, outermost = 0;
  for (std::uint32_t a = 0; a < spreading_.axes.size(); ++a) {
    if (stride == levels.back().stride && spreading_.axes[a].size == levels.back().size)
      outermost = a;
    stride *= spreading_.axes[a].size;
  }
  for (std::uint32_t node = 2; node < levels.back().size; ++node)
    if (levels.back().size % node == 0) forms.push_back({AllReduce::ring, outermost, node});
  return forms;
}

std::optional<Time> CollectiveChoice::time_of(const CollectiveForm& form,
                                              const Collective& collective,
                                              std::span<const MemoryId> memories, Bytes bytes,
                                              Groups groups) const {
  const std::vector<RankLevel> levels = levels_of(spreading_.axes, collective, form);
  if (levels.empty()) return Time{};
  const std::uint32_t n = product(levels);
  std::vector<std::uint32_t> sizes;
  for (const RankLevel& level : levels) sizes.push_back(level.size);
  const std::vector<CollectiveSend> sends = sends_of(collective.kind, form.algorithm, sizes, 0);
  const Bytes part{(bytes.count() + n - 1) / n};
  Time sum = openings_.of(memories.front(), part, sends.front().part.opens);
  std::optional<Time> round;
  for (std::size_t s = 0; s < sends.size(); ++s) {
    const CollectiveSend& send = sends[s];
    const bool is_as_before =
        s > 0 && send.to == sends[s - 1].to && send.part.count == sends[s - 1].part.count;
    if (!is_as_before)
      round = time_of_round(levels, form, send.to, memories, part * std::int64_t{send.part.count},
                            groups);
    if (!round) return std::nullopt;
    sum += *round;
  }
  return sum;
}

std::optional<Time> CollectiveChoice::time_of_round(std::span<const RankLevel> levels,
                                                    const CollectiveForm& form, std::uint32_t to,
                                                    std::span<const MemoryId> memories, Bytes bytes,
                                                    Groups groups) const {
  LinkLoads loads(platform_);
  const std::vector<std::uint32_t> offsets = members_of(0, levels);
  const std::size_t ranks = groups == Groups::all ? memories.size() : 1;
  for (std::uint32_t first = 0; first < ranks; ++first) {
    if (!is_first(first, levels)) continue;
    for (std::uint32_t i = 0; i < offsets.size(); ++i) {
      const std::uint32_t there = led_to(levels, form.algorithm, i, to);
      const Route* way = spreading_.chosen_on->route(memories[first + offsets[i]],
                                                     memories[first + offsets[there]]);
      if (way == nullptr) return std::nullopt;
      loads.add(*way, bytes);
    }
  }
  return loads.longest();
}

}  // namespace plimsoll
