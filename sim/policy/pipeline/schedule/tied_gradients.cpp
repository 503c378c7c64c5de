#include "policy/pipeline/schedule/tied_gradients.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {

namespace {

/// By gradient that several slots make: those slots.
std::map<TensorId, std::vector<std::size_t>> shared_by_slots(const Slots& slots) {
  std::map<TensorId, std::vector<std::size_t>> makers;
  for (std::size_t slot = 0; slot < slots.count(); ++slot)
    for (const TensorId gradient : slots.gradients(slot)) makers[gradient].push_back(slot);
  std::erase_if(makers, [](const auto& it) { return it.second.size() < 2; });
  return makers;
}

/// Adds a holder whose memory is not there yet.
void add_holder(std::vector<Holder>& holders, const Holder& holder) {
  if (std::ranges::find(holders, holder.memory, &Holder::memory) == holders.end())
    holders.push_back(holder);
}

std::vector<Holder> holders_of(const Slots& slots, const std::vector<std::size_t>& makers) {
  std::vector<Holder> holders;
  for (const std::size_t slot : makers)
    add_holder(holders, {slots.device(slot), slots.memory(slots.device(slot))});
  std::ranges::sort(holders, {}, &Holder::device);
  return holders;
}

bool same_holders(const std::vector<Holder>& a, const std::vector<Holder>& b) {
  return std::ranges::equal(a, b, {}, &Holder::memory, &Holder::memory);
}

}  // namespace

bool TiedGradients::is_grid() const {
  std::size_t count = 0;
  for (const auto& of_copy : holders) {
    if (of_copy.size() != holders.front().size()) return false;
    count += of_copy.size();
  }
  return all_holders().size() == count;
}

std::vector<Holder> TiedGradients::all_holders() const {
  std::vector<Holder> all;
  for (const auto& of_copy : holders)
    for (const Holder& holder : of_copy) add_holder(all, holder);
  return all;
}

std::vector<TiedGradients> tied_gradients(const std::vector<const Slots*>& copies) {
  std::map<std::vector<std::size_t>, std::vector<TensorId>> by_makers;
  for (const auto& [gradient, makers] : shared_by_slots(*copies.front()))
    by_makers[makers].push_back(gradient);
  std::vector<TiedGradients> all;
  for (auto& [makers, gradients] : by_makers) {
    TiedGradients& it = all.emplace_back(TiedGradients{std::move(gradients), makers.front(), {}});
    for (const Slots* slots : copies) {
      std::vector<Holder> holders = holders_of(*slots, makers);
      const auto same = [&](const auto& other) { return same_holders(holders, other); };
      if (std::ranges::none_of(it.holders, same)) it.holders.push_back(std::move(holders));
    }
  }
  return all;
}

}  // namespace plimsoll
