#include "policy/hybrid/pofo_inner.hpp"

#include "engine/wide.hpp"

#include <algorithm>

namespace plimsoll {

PofoInner::PofoInner(const ChainCosts& costs, Bytes available, std::int64_t slots,
                     std::int64_t most_values, Time most)
    : available_(available),
      unit_(size_unit(costs)),
      chain_(rotor_chain(costs, unit_, available, slots)),
      checkpoints_(chain_.stages(), true),
      table_(chain_, most.count(), checkpoints_, most_values, RotorTable::Holds::segments) {}

std::int64_t PofoInner::units(Bytes room) const {
  const std::int64_t all = available_.count() / unit_;
  if (room < Bytes{} || all == 0) return 0;
  const auto part = static_cast<Signed128>(room.count() / unit_) * chain_.units / all;
  return std::min(static_cast<std::int64_t>(part), chain_.units);
}

ChainSequence PofoInner::schedule(std::uint32_t s, std::uint32_t t, std::int64_t units) const {
  return persistent_sequence(
      chain_,
      [this](std::size_t from, std::size_t to, std::int64_t of) {
        return table_.recomputed(from, to, of);
      },
      s, t, units);
}

}  // namespace plimsoll
