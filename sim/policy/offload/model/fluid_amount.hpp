/// Divisible amounts of memory, counted in 1e-12 B, so that a rate in B/s moves whole amounts in a
/// time in ps and nothing is rounded.
#pragma once

#include "base/quantity.hpp"
#include "engine/wide.hpp"

namespace plimsoll {

using FluidAmount = Signed128;

inline constexpr FluidAmount kFluidByte = 1'000'000'000'000;
/// More than any amount: what an unlimited rate moves.
inline constexpr FluidAmount kFluidFar = FluidAmount{1} << 120;

[[nodiscard]] inline FluidAmount fluid(Bytes bytes) {
  return bytes.is_unlimited() ? kFluidFar : bytes.count() * kFluidByte;
}

/// What `rate` moves in `time`.
[[nodiscard]] inline FluidAmount fluid_moved(Time time, ByteRate rate) {
  return rate.is_unlimited() ? kFluidFar : static_cast<FluidAmount>(rate.count()) * time.count();
}

}  // namespace plimsoll
