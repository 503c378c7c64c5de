#include "memory/placement/exact.hpp"

#include "memory/placement/greedy.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::int64_t kFirstQuestion = 64'000'000;

/// What every end of a placement of least sum of offsets is a multiple of; 1 where all is empty.
Bytes unit_of(std::span<const TimedBuffer> buffers) {
  std::int64_t unit = 0;
  for (const TimedBuffer& it : buffers) {
    unit = std::gcd(unit, std::gcd(it.size.count(), it.offset.value_or(Bytes{}).count()));
    if (it.alignment > Bytes{1}) unit = std::gcd(unit, it.alignment.count());
  }
  return Bytes{std::max<std::int64_t>(unit, 1)};
}

/// The first multiple of `unit` above `bytes`.
Bytes next_above(Bytes bytes, Bytes unit) {
  return Bytes{(bytes.count() / unit.count() + 1) * unit.count()};
}

ExactPlacement by_rules(std::span<const TimedBuffer> buffers) {
  ExactPlacement answer;
  answer.offsets = place_by_rule(buffers, PlacementRule::best);
  answer.end = end_of(buffers, answer.offsets);
  answer.lower_bound = lowest_end(buffers);
  return answer;
}

class LowestEnd {
 public:
  LowestEnd(std::span<const TimedBuffer> buffers, std::int64_t limit, Work work)
      : buffers_(buffers),
        limit_(limit),
        work_(work),
        unit_(unit_of(buffers)),
        answer_(by_rules(buffers)) {
    answer_.fit = Fit::fits;
  }

  ExactPlacement find() {
    if (buffers_.size() > kMostSearchedBuffers) return std::move(answer_);
    for (std::int64_t share = kFirstQuestion; !is_done(); share *= 4) ask_downwards(share);
    return std::move(answer_);
  }

 private:
  [[nodiscard]] bool is_done() const { return answer_.is_optimal() || answer_.steps >= limit_; }

  /// The bound itself; then halfway between what could not be decided and the best.
  void ask_downwards(std::int64_t share) {
    Bytes target = answer_.lower_bound;
    while (!is_done()) {
      const Fit fit = ask(target, share);
      if (fit == Fit::does_not_fit) {
        target = answer_.lower_bound;
        continue;
      }
      if (fit == Fit::unknown) undecided_ = target;
      const Bytes from = std::max(fit == Fit::unknown ? target : undecided_, answer_.lower_bound);
      const std::int64_t units = (answer_.end - from).count() / unit_.count();
      if (units < 2) return;
      target = from + unit_ * (units / 2);
    }
  }

  Fit ask(Bytes target, std::int64_t share) {
    FitAnswer found = search_fit(buffers_, target, std::min(share, limit_ - answer_.steps), work_);
    answer_.steps += found.steps;
    if (found.fit == Fit::does_not_fit) answer_.lower_bound = next_above(target, unit_);
    if (found.fit == Fit::fits) {
      answer_.end = end_of(buffers_, found.offsets);
      answer_.offsets = std::move(found.offsets);
    }
    return found.fit;
  }

  std::span<const TimedBuffer> buffers_;
  std::int64_t limit_;
  Work work_;
  Bytes unit_;
  Bytes undecided_;
  ExactPlacement answer_;
};

}  // namespace

ExactPlacement fit_exactly(std::span<const TimedBuffer> buffers, Bytes capacity, std::int64_t limit,
                           Work work) {
  ExactPlacement answer = by_rules(buffers);
  answer.fit = answer.end <= capacity          ? Fit::fits
               : answer.lower_bound > capacity ? Fit::does_not_fit
                                               : Fit::unknown;
  if (answer.fit != Fit::unknown || buffers.size() > kMostSearchedBuffers) return answer;
  FitAnswer found = search_fit(buffers, capacity, limit, work);
  answer.fit = found.fit;
  answer.steps = found.steps;
  if (found.fit == Fit::does_not_fit) answer.lower_bound = next_above(capacity, unit_of(buffers));
  if (found.fit == Fit::fits) {
    answer.offsets = std::move(found.offsets);
    answer.end = end_of(buffers, answer.offsets);
  }
  return answer;
}

ExactPlacement lowest_placement(std::span<const TimedBuffer> buffers, std::int64_t limit,
                                Work work) {
  return LowestEnd(buffers, limit, work).find();
}

}  // namespace plimsoll
