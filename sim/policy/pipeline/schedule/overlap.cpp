#include "policy/pipeline/schedule/overlap.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// `whole` x `part` / `of`, rounded up; 0 of nothing.
Time proportional(Time whole, std::int64_t part, std::int64_t of) {
  using Wide = unit::Wide::Count;
  if (of == 0) return {};
  return Time{static_cast<std::int64_t>((Wide{whole.count()} * part + of - 1) / of)};
}

Time sum(std::span<const Time> times) {
  Time all;
  for (const Time time : times) all += time;
  return all;
}

}  // namespace

std::vector<Time> overlapped_times(std::span<const Time> first, std::span<const Time> second,
                                   Ratio share) {
  const Time apart = sum(first) + sum(second);
  const Time together =
      std::max({proportional(apart, share.count(), kWhole.count()), sum(first), sum(second)});
  std::vector<Time> own{first.front() + second.front()};
  own.insert(own.end(), first.begin() + 1, first.end());
  own.insert(own.end(), second.begin() + 1, second.end());
  // By what has passed until their ends, so that roundings do not add up.
  Time passed, before;
  for (Time& time : own) {
    passed += time;
    const Time end = proportional(together, passed.count(), apart.count());
    time = end - before;
    before = end;
  }
  return own;
}

}  // namespace plimsoll
