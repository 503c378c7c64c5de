#include "policy/claims/grants.hpp"

#include <algorithm>
#include <functional>

namespace plimsoll {

std::optional<Moment> GrantLedger::grant(Bytes demand, Moment ready) {
  if (demand == Bytes{}) return ready;
  Moment start = std::max(ready, last_grant_);
  settle(start);
  while (!fits(demand)) {
    const auto change = next_change(start);
    const Time fit = pending_.empty() ? Time::unlimited() : first_fit(demand, start);
    if (!fit.is_unlimited() && (!change || Moment{fit, 0} < *change))
      start = {fit, 0};
    else if (change)
      start = *change;
    else
      return std::nullopt;
    settle(start);
  }
  used_ += demand;
  if (start > std::max(ready, last_grant_)) last_wait_ = start;
  last_grant_ = start;
  return start;
}

void GrantLedger::free_at(Moment when, Bytes bytes) {
  if (bytes == Bytes{}) return;
  was_told_late_ = was_told_late_ || when < last_wait_;
  frees_.emplace_back(when, bytes);
  std::ranges::push_heap(frees_, std::greater<>{});
}

std::uint32_t GrantLedger::release_progressively(Time begin, Moment end, Bytes bytes) {
  const ProgressiveRelease release{
      .begin = begin, .end = end.time, .bytes = bytes, .under_way = true};
  pending_.push_back({releases_, release, {}, end, false});
  return releases_++;
}

void GrantLedger::open_release(std::uint32_t release, Moment when) {
  const auto it = std::ranges::find(pending_, release, &PendingRelease::id);
  was_told_late_ = was_told_late_ || std::max(Moment{it->release.begin, 0}, when) < last_wait_;
  it->open_from = when;
  it->has_opened = true;
}

/// Takes in all that is free at `now`.
void GrantLedger::settle(Moment now) {
  while (!frees_.empty() && frees_.front().first <= now) {
    used_ -= frees_.front().second;
    std::ranges::pop_heap(frees_, std::greater<>{});
    frees_.pop_back();
  }
  for (PendingRelease& it : pending_) {
    if (!it.has_opened || it.open_from > now) continue;
    it.release.open = true;
    const Bytes free = it.over() <= now ? it.release.bytes : it.release.free_by(now.time);
    used_ -= free - it.release.given;
    it.release.given = free;
  }
  std::erase_if(pending_, [](const PendingRelease& it) {
    return it.has_opened && it.release.given == it.release.bytes;
  });
}

/// The next moment at which something is released whole, opens, or is over.
std::optional<Moment> GrantLedger::next_change(Moment now) const {
  std::optional<Moment> next;
  const auto consider = [&](Moment when) {
    if (when > now && (!next || when < *next)) next = when;
  };
  if (!frees_.empty()) consider(frees_.front().first);
  for (const PendingRelease& it : pending_) {
    if (!it.has_opened) continue;
    consider(it.open_from);
    consider(it.over());
  }
  return next;
}

/// When the progressive releases that are open now have made room, if nothing else changes.
Time GrantLedger::first_fit(Bytes demand, Moment now) const {
  std::vector<ProgressiveRelease> open;
  std::vector<std::uint32_t> all;
  for (const PendingRelease& it : pending_) {
    if (!it.release.open) continue;
    all.push_back(static_cast<std::uint32_t>(open.size()));
    open.push_back(it.release);
  }
  return first_time_of(open, all, used_ + demand - usable_, now.time);
}

}  // namespace plimsoll
