#include "engine/virtual_clock.hpp"

#include <cassert>
#include <limits>

namespace plimsoll {
namespace {

constexpr int kFraction = 32;
constexpr std::uint64_t kPicoseconds = 1'000'000'000'000;
constexpr std::uint64_t kLongest = std::numeric_limits<std::int64_t>::max();

std::uint64_t positive(std::int64_t count) {
  assert(count >= 0);
  return static_cast<std::uint64_t>(count);
}

}  // namespace

Service service_of(Bytes bytes, ByteRate reference) {
  if (reference.is_unlimited()) return 0;
  assert(reference > ByteRate{});
  const std::uint64_t rate = positive(reference.count());
  const Unsigned128 work = Unsigned128{positive(bytes.count())} * kPicoseconds;
  const Unsigned128 whole = work / rate;
  if (whole >= kLongest) detail::throw_quantity_overflow();
  const Unsigned128 rest = work - whole * rate;
  return (whole << kFraction) + ((rest << kFraction) + rate - 1) / rate;
}

Bytes bytes_of(Service service, ByteRate reference) {
  // (whole + fraction) * R / 10^12 with one rounding, at the end: floor(floor(x) / n) = floor(x /
  // n).
  const std::uint64_t rate = positive(reference.count());
  const auto whole = static_cast<std::uint64_t>(service >> kFraction);
  const auto fraction = static_cast<std::uint32_t>(service);
  const Unsigned128 moved = Unsigned128{whole} * rate + (Unsigned128{fraction} * rate >> kFraction);
  return Bytes{static_cast<std::int64_t>(moved / kPicoseconds)};
}

Service RateShare::served_in(Time elapsed) const {
  const Unsigned128 time = positive(elapsed.count());
  if (divisor_ == 1) return time << kFraction;
  if (divisor_ != 0) return (time << kFraction) / divisor_;
  return time * parts_ >> (64 - kFraction);
}

Time RateShare::time_for(Service service) const {
  constexpr Unsigned128 kBelowOne = (Unsigned128{1} << kFraction) - 1;
  const Unsigned128 time = divisor_ != 0 ? (service * divisor_ + kBelowOne) >> kFraction
                                         : ((service << (64 - kFraction)) + (parts_ - 1)) / parts_;
  if (time >= kLongest) detail::throw_quantity_overflow();
  return Time{static_cast<std::int64_t>(time)};
}

void VirtualClock::advance(Time now) {
  if (now == time_) return;
  reading_ = reading(now);
  time_ = now;
}

Service VirtualClock::start(std::uint32_t flow, Service service) {
  const Service end = reading_ + service;
  ends_.push({end, sequence_++, flow});
  return end;
}

Time VirtualClock::next_end() const {
  if (ends_.empty()) return Time::unlimited();
  const Service first = ends_.top().at;
  return first <= reading_ ? time_ : time_ + share_.time_for(first - reading_);
}

void VirtualClock::collect(std::vector<std::uint32_t>& ended) {
  while (!ends_.empty() && ends_.top().at <= reading_) ended.push_back(ends_.pop().flow);
}

Service VirtualClock::reading(Time now) const {
  assert(now >= time_);
  return ends_.empty() ? reading_ : reading_ + share_.served_in(now - time_);
}

}  // namespace plimsoll
