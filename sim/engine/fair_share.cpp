#include "engine/fair_share.hpp"

#include <cassert>

namespace plimsoll {

void FairShare::start(Time now, std::uint32_t flow, Bytes bytes) {
  assert(now <= next_end_);
  if (clock_.idle()) busy_since_ = now;
  clock_.advance(now);
  clock_.start(flow, service_of(bytes, capacity_));
  share_out();
}

void FairShare::advance(Time now, std::vector<std::uint32_t>& ended) {
  assert(now <= next_end_);
  if (now < next_end_) return;
  clock_.advance(now);
  clock_.collect(ended);
  if (clock_.idle()) busy_time_ += now - busy_since_;
  share_out();
}

Time FairShare::busy_time(Time now) const {
  return clock_.idle() ? busy_time_ : busy_time_ + (now - busy_since_);
}

void FairShare::share_out() {
  if (!clock_.idle()) clock_.set_share(RateShare::one_of(clock_.flows()));
  next_end_ = clock_.next_end();
}

}  // namespace plimsoll
