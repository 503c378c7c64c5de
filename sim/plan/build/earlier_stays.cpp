#include "plan/build/earlier_stays.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <compare>

namespace plimsoll {

namespace {

/// A value in a memory.
struct StayPlace {
  TensorId tensor{};
  std::uint32_t microbatch = 0, instance = 0;
  MemoryId memory{};
  auto operator<=>(const StayPlace&) const = default;
};

StayPlace place_of(const Buffer& buffer) {
  return {buffer.tensor, buffer.microbatch, buffer.instance, buffer.memory};
}

struct Taken {
  StayPlace from;
  StepId by{};
  BufferId stay{};
  auto operator<=>(const Taken&) const = default;
};

}  // namespace

std::vector<EarlierStay> earlier_stays(const Plan& plan, const Readers& readers) {
  std::vector<Taken> taken;
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b)
    if (const StepId copy = readers.taken_by(BufferId{b}); copy != kNoStep)
      taken.push_back({place_of(plan.buffers[b]), copy, BufferId{b}});
  if (taken.empty()) return {};
  std::ranges::sort(taken);

  std::vector<EarlierStay> found;
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].kind != StepKind::copy) continue;
    const StayPlace to = place_of(plan[plan.list(plan.steps[s].writes).front()]);
    const auto after = std::ranges::lower_bound(taken, Taken{to, StepId{s}, BufferId{}});
    if (after != taken.begin() && std::prev(after)->from == to)
      found.push_back({StepId{s}, std::prev(after)->stay});
  }
  return found;
}

}  // namespace plimsoll
