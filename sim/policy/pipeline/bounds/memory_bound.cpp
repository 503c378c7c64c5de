#include "policy/pipeline/bounds/memory_bound.hpp"

#include "policy/pipeline/bounds/knapsack_bound.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

/// What one slot asks of its device, for each microbatch: times in ps, and bytes.
struct Chunk {
  std::int64_t forward = 0, backward = 0, weight = 0;
  std::int64_t saved = 0, held = 0;
  std::int64_t forward_head = 0, backward_head = 0, forward_tail = 0, backward_tail = 0;
  std::int64_t round_trip = 0;  ///< from the start of the forward to the end of the backward
};

/// By class, without weight halves: when a microbatch begins that never waits. Unlike a head it may
/// be before the start of the network, where slots begin before anything has come for them.
std::vector<std::int64_t> passages(const TaskNetwork& network) {
  std::vector<std::int64_t> starts(network.classes.size(), 0);
  for (std::uint32_t c = 0; c != 1;) {
    const TaskNetwork::Handover& way = network.classes[c].next[0];
    starts[way.to] = starts[c] + network.classes[c].time + way.lag();
    c = way.to;
  }
  return starts;
}

std::vector<std::vector<Chunk>> chunks_by_device(const TaskNetwork& network,
                                                 const HeadsAndTails& ends) {
  const std::vector<std::int64_t> passage = passages(network);
  std::vector<std::vector<Chunk>> chunks(network.devices);
  for (std::size_t forward = 0; forward < network.classes.size(); forward += 3) {
    const std::size_t backward = forward + 1, weight = forward + 2;
    const auto& classes = network.classes;
    chunks[classes[forward].device].push_back(
        {.forward = classes[forward].time,
         .backward = classes[backward].time,
         .weight = classes[weight].time,
         .saved = classes[forward].kept,
         .held = -classes[weight].kept,
         .forward_head = ends.head[forward],
         .backward_head = ends.head[backward],
         .forward_tail = ends.tail[forward],
         .backward_tail = ends.tail[backward],
         .round_trip = passage[backward] + classes[backward].time - passage[forward]});
  }
  return chunks;
}

class DeviceBound {
 public:
  DeviceBound(const TaskNetwork& network, std::uint32_t device, std::vector<Chunk> chunks,
              std::int64_t limit)
      : m_(network.microbatches),
        before_(network.before[device]),
        after_(network.after[device]),
        limit_(limit),
        chunks_(std::move(chunks)) {}

  /// Whether a microbatch of each chunk fits into the limit; there is nothing to bound otherwise.
  [[nodiscard]] bool fits() const {
    const auto fits = [&](const Chunk& it) { return it.saved <= limit_; };
    return limit_ > 0 && !chunks_.empty() && std::ranges::all_of(chunks_, fits);
  }

  [[nodiscard]] std::int64_t of_both_ends() const {
    Wide all_saved = 0;
    std::int64_t work = before_ + after_;
    for (const Chunk& it : chunks_) {
      all_saved += Wide{it.saved} * m_;
      work += (it.forward + it.backward + it.weight) * m_;
    }
    if (all_saved <= limit_) return 0;
    return work + std::max<std::int64_t>(idle_before_backwards(), 0) +
           std::max<std::int64_t>(idle_after_forwards(), 0);
  }

  [[nodiscard]] std::int64_t of_turns() const {
    std::int64_t longest = 0;
    for (const Chunk& it : chunks_) longest = std::max(longest, of_turns(it));
    return longest;
  }

  [[nodiscard]] std::int64_t of_room() const {
    Wide kept = 0;
    std::int64_t head = INT64_MAX, tail = INT64_MAX;
    for (const Chunk& it : chunks_) {
      const std::int64_t time = it.round_trip - it.forward - it.backward;
      kept += Wide{it.saved} * m_ * std::max<std::int64_t>(time, 0);
      head = std::min(head, it.forward_head + it.forward);
      tail = std::min(tail, it.backward + it.backward_tail);
    }
    // Round trips of many chunks, for many microbatches, may leave the range.
    return static_cast<std::int64_t>(
        std::min<Wide>(head + (kept + limit_ - 1) / limit_ + tail, INT64_MAX - 1));
  }

 private:
  [[nodiscard]] std::int64_t idle_before_backwards() const {
    std::int64_t begin = INT64_MAX;
    std::vector<KnapsackItem> forwards;
    for (const Chunk& it : chunks_) {
      begin = std::min(begin, it.backward_head);
      forwards.push_back({it.saved, it.forward, m_});
    }
    return begin - before_ - knapsack_bound(std::move(forwards), limit_);
  }

  [[nodiscard]] std::int64_t idle_after_forwards() const {
    std::int64_t least = INT64_MAX;
    for (const Chunk& last : chunks_) {
      const std::int64_t others = knapsack_bound(backwards_beside(last), limit_ - last.saved);
      least = std::min(least, last.forward_tail - after_ - last.backward - last.weight - others);
    }
    return least;
  }

  /// Backwards and weight halves of what may be kept beside one microbatch of `last`: by what a
  /// microbatch saves, or first by what it holds, if that is the denser.
  [[nodiscard]] std::vector<KnapsackItem> backwards_beside(const Chunk& last) const {
    std::vector<KnapsackItem> goods;
    for (const Chunk& it : chunks_) {
      const std::int64_t count = &it == &last ? m_ - 1 : m_;
      const std::int64_t both = it.backward + it.weight;
      if (Wide{it.weight} * it.saved > Wide{both} * it.held) {
        goods.push_back({it.held, it.weight, count});
        goods.push_back({it.saved - it.held, it.backward, count});
      } else {
        goods.push_back({it.saved, both, count});
        goods.push_back({it.held, it.weight, count});
      }
    }
    return goods;
  }

  [[nodiscard]] std::int64_t of_turns(const Chunk& it) const {
    if (it.saved == 0) return 0;
    const std::int64_t fit = limit_ / it.saved;
    if (m_ <= fit) return 0;
    const std::int64_t turns = (m_ - 1) / fit, first = m_ - turns * fit;
    const bool fits_more = limit_ - fit * it.saved >= it.held;
    const std::int64_t more =
        fits_more ? 0 : std::min(it.weight, std::max(it.forward, it.backward));
    return it.forward_head + first * it.forward + turns * (it.round_trip + more) + it.forward_tail;
  }

  const std::int64_t m_;
  const std::int64_t before_, after_;
  const std::int64_t limit_;
  const std::vector<Chunk> chunks_;
};

}  // namespace

std::int64_t memory_bound(const TaskNetwork& network, const HeadsAndTails& ends,
                          const std::vector<std::int64_t>& limits) {
  std::vector<std::vector<Chunk>> chunks = chunks_by_device(network, ends);
  std::int64_t longest = 0;
  for (std::uint32_t d = 0; d < network.devices; ++d) {
    const DeviceBound bound(network, d, std::move(chunks[d]), limits[d]);
    if (limits[d] != INT64_MAX && bound.fits())
      longest = std::max({longest, bound.of_both_ends(), bound.of_turns(), bound.of_room()});
  }
  return longest;
}

}  // namespace plimsoll
