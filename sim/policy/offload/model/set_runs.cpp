#include "policy/offload/model/set_runs.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

OffloadAction action(Kind kind, std::size_t stage) {
  return {kind, static_cast<std::uint32_t>(stage)};
}

OffloadSequence forwards_of(const OffloadSet& set) {
  OffloadSequence sequence;
  for (std::size_t s = 0; s < set.size(); ++s) {
    sequence.push_back(action(Kind::forward, s));
    if (set[s]) sequence.push_back(action(Kind::out, s));
  }
  return sequence;
}

/// When the next backward would end.
std::optional<Moment> end_of_backward(OffloadPlay& now) {
  OffloadPlay::Mark before = now.mark();
  const bool ends = now.backward();
  const Moment end = now.stream_free();
  now.back_to(std::move(before));
  return ends ? std::optional(end) : std::nullopt;
}

}  // namespace

OffloadSequence fetched_ahead(const OffloadSet& set, std::size_t distance) {
  OffloadSequence sequence = forwards_of(set);
  std::size_t next = set.size();  // stages from here on are back
  const auto fetch_from = [&](std::size_t stage) {
    while (next > stage)
      if (set[--next]) sequence.push_back(action(Kind::in, next));
  };
  if (set.size() > distance) fetch_from(set.size() - distance - 1);
  for (std::size_t s = set.size(); s-- > 0;) {
    sequence.push_back(action(Kind::backward, s));
    fetch_from(s > distance + 1 ? s - 1 - distance : 0);
  }
  return sequence;
}

std::optional<OffloadSequence> fetched_when_free(const OffloadModel& model, const OffloadSet& set) {
  OffloadSequence sequence = forwards_of(set);
  OffloadPlay now(model);
  for (const OffloadAction& it : sequence)
    if (!now.add(it)) return std::nullopt;
  std::size_t next = set.size();  // stages from here on are back
  const auto skip = [&] {
    while (next > 0 && !set[next - 1]) --next;
  };
  const auto fetch = [&] {
    sequence.push_back(action(Kind::in, --next));
    return now.in(next);
  };
  for (std::size_t s = set.size(); s-- > 0;) {
    const std::size_t needed = s > 0 ? s - 1 : 0;
    for (skip(); next > needed; skip())
      if (!fetch()) return std::nullopt;
    const auto plain = end_of_backward(now);
    if (!plain) return std::nullopt;
    for (; next > 0; skip()) {
      OffloadPlay::Mark before = now.mark();
      const bool comes = now.in(next - 1);
      const auto with = comes ? end_of_backward(now) : std::nullopt;
      if (!with || *with > *plain) {
        now.back_to(std::move(before));
        break;
      }
      sequence.push_back(action(Kind::in, --next));
    }
    sequence.push_back(action(Kind::backward, s));
    if (!now.backward()) return std::nullopt;
  }
  return sequence;
}

void run_set(const OffloadModel& model, const OffloadSet& set, std::vector<Timed>& found) {
  const auto add = [&](OffloadSequence sequence) {
    if (const auto makespan = play(model, sequence))
      found.push_back({std::move(sequence), *makespan});
  };
  for (std::size_t distance = 1; distance <= 3; ++distance) add(fetched_ahead(set, distance));
  if (auto sequence = fetched_when_free(model, set)) add(std::move(*sequence));
}

}  // namespace plimsoll
