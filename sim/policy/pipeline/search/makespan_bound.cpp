#include "policy/pipeline/search/makespan_bound.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

/// By class: the least time from the start of the network until one of its tasks can begin.
std::vector<std::int64_t> heads(const TaskNetwork& network) {
  std::vector<std::int64_t> head;
  for (const TaskNetwork::Class& it : network.classes) head.push_back(network.before[it.device]);
  std::vector<std::uint32_t> missing, ready;
  for (std::uint32_t c = 0; c < network.classes.size(); ++c) {
    missing.push_back(network.classes[c].inputs);
    if (missing.back() == 0) ready.push_back(c);
  }
  while (!ready.empty()) {
    const std::uint32_t c = ready.back();
    ready.pop_back();
    const TaskNetwork::Class& it = network.classes[c];
    for (const TaskNetwork::Handover& handover : it.next) {
      if (handover.to == TaskNetwork::kNone) break;
      head[handover.to] = std::max(head[handover.to], head[c] + it.time + handover.lag());
      if (--missing[handover.to] == 0) ready.push_back(handover.to);
    }
  }
  return head;
}

class Bound {
 public:
  explicit Bound(const TaskNetwork& network)
      : network_(network), head_(heads(network)), tail_(heads(network.turned_round())) {}

  [[nodiscard]] std::int64_t of_one_microbatch() const {
    std::int64_t longest = 0;
    for (std::size_t c = 0; c < head_.size(); ++c)
      longest = std::max(longest, head_[c] + network_.classes[c].time + tail_[c]);
    return longest;
  }

  [[nodiscard]] std::int64_t of_device(std::uint32_t device) const {
    std::vector<std::uint32_t> own;
    for (std::uint32_t c = 0; c < head_.size(); ++c)
      if (network_.classes[c].device == device && is_used(c)) own.push_back(c);
    std::int64_t longest = 0;
    for (const std::uint32_t first : own)
      for (const std::uint32_t last : own) {
        std::int64_t work = 0;
        for (const std::uint32_t c : own)
          if (head_[c] >= head_[first] && tail_[c] >= tail_[last])
            work += network_.classes[c].time * network_.microbatches;
        if (work > 0) longest = std::max(longest, head_[first] + work + tail_[last]);
      }
    return longest;
  }

  /// `limits` in all; none where one is unlimited.
  [[nodiscard]] std::int64_t of_memory(const std::vector<std::int64_t>& limits) const {
    Wide room = 0;
    for (const std::int64_t limit : limits) {
      if (limit == INT64_MAX) return 0;
      room += std::max<std::int64_t>(limit, 1);
    }
    Wide kept = 0;
    for (std::size_t forward = 0; forward < head_.size(); forward += 3)
      for (const std::size_t c : {forward + 1, forward + 2})
        kept += Wide{-network_.classes[c].kept} *
                std::max<std::int64_t>(head_[c] + network_.classes[c].time - head_[forward], 0);
    kept *= network_.microbatches;
    // Where nothing fits it may leave the range.
    return static_cast<std::int64_t>(std::min<Wide>((kept + room - 1) / room, INT64_MAX - 1));
  }

 private:
  /// Whole backwards have no weight halves.
  [[nodiscard]] bool is_used(std::uint32_t c) const { return network_.splits || c % 3 != 2; }

  const TaskNetwork& network_;
  const std::vector<std::int64_t> head_, tail_;  ///< by class
};

}  // namespace

Time makespan_bound(const TaskNetwork& network, const std::vector<std::int64_t>& limits) {
  const Bound bound(network);
  std::int64_t longest = std::max(bound.of_one_microbatch(), bound.of_memory(limits));
  for (std::uint32_t d = 0; d < network.devices; ++d)
    longest = std::max(longest, bound.of_device(d));
  return Time{longest};
}

Time two_way_bound(const TaskNetwork& network) {
  const std::vector<std::int64_t> head = heads(network);
  Wide all = 0;
  for (const TaskNetwork::Class& it : network.classes) all += Wide{it.time} * network.microbatches;
  const std::uint32_t p = network.devices;
  for (std::uint32_t d = 0; d < p; ++d)
    all += std::min(head[3 * std::size_t{d}], head[3 * std::size_t{p - 1 - d}]);
  return Time{static_cast<std::int64_t>((all + p - 1) / p)};
}

}  // namespace plimsoll
