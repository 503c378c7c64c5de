#include "policy/hybrid/pofo_runs.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

/// One way to run a score, as it is decided beat by beat.
class Conductor {
 public:
  Conductor(const OffloadModel& model, const PofoScore& score)
      : model_(model),
        score_(score),
        loads_(score.loads),
        left_(static_cast<std::uint32_t>(score.trips.size())),
        now_(model, score) {}

  /// Without a `distance` copies back are issued where that delays nothing.
  std::optional<Timed> run(std::optional<std::uint32_t> distance) {
    for (std::uint32_t b = 0; b < score_.beats.size(); ++b) {
      if (b >= score_.turn) {
        while (left_ > 0 && next().needed == b)
          if (!fetch(b)) return std::nullopt;
        if (distance)
          while (left_ > 0 && next().needed <= b + *distance && has_room(b))
            if (!fetch(b)) return std::nullopt;
        if (!distance && !fetch_what_delays_nothing(b)) return std::nullopt;
      }
      sequence_.push_back(score_.beats[b].action);
      if (!now_.beat()) return std::nullopt;
      if (score_.beats[b].makes != kNone)
        sequence_.push_back({Kind::out, score_.beats[b].action.stage});
    }
    const auto makespan = now_.end();
    if (!makespan) return std::nullopt;
    return Timed{std::move(sequence_), *makespan};
  }

 private:
  [[nodiscard]] const PofoTrip& next() const { return score_.trips[left_ - 1]; }

  /// Whether all beats from `b` to the one that needs it can run beside what comes back next.
  [[nodiscard]] bool has_room(std::uint32_t b) const {
    if (model_.budget.is_unlimited()) return true;
    for (std::uint32_t i = b; i < next().needed; ++i)
      if (loads_[i] + next().copy.bytes > model_.budget) return false;
    return true;
  }

  bool fetch(std::uint32_t b) {
    for (std::uint32_t i = b; i < next().needed; ++i) loads_[i] += next().copy.bytes;
    sequence_.push_back({Kind::in, next().stage});
    return now_.back(--left_);
  }

  /// False where beat `b` cannot run even so.
  bool fetch_what_delays_nothing(std::uint32_t b) {
    if (left_ == 0 || !has_room(b)) return true;
    PofoPlay plain = now_;
    if (!plain.beat()) return false;
    while (left_ > 0 && has_room(b)) {
      PofoPlay with = now_;
      if (!with.back(left_ - 1)) return true;
      if (!with.beat() || with.stream_free() > plain.stream_free()) return true;
      if (!fetch(b)) return false;
    }
    return true;
  }

  const OffloadModel& model_;
  const PofoScore& score_;
  std::vector<Bytes> loads_;
  std::uint32_t left_;  ///< trips that are not back
  PofoPlay now_;
  OffloadSequence sequence_;
};

}  // namespace

void run_score(const OffloadModel& model, const PofoScore& score, std::vector<Timed>& found) {
  const std::optional<std::uint32_t> ways[] = {std::nullopt, 1, 2, 3};
  for (const auto& distance : ways)
    if (auto run = Conductor(model, score).run(distance)) found.push_back(std::move(*run));
}

}  // namespace plimsoll
