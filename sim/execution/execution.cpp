#include "execution/execution.hpp"

#include "execution/machine.hpp"

#include <array>

namespace plimsoll {

const char* to_text(StallCause cause) {
  constexpr std::array names{"transfer", "dependency", "memory"};
  return names[static_cast<std::size_t>(cause)];
}

namespace {

template <bool kObserved>
Execution play(const Program& program, Observer* observer) {
  if (!places_ahead(program)) return Machine<kObserved>(program, observer).run();
  BlockLifetimes lifetimes(program);
  const Execution counted = Machine<true>(program, &lifetimes).run();
  // Without its end the lifetimes are not known: what failed is told as it was.
  if (counted.status != RunStatus::ok) return Machine<kObserved>(program, observer).run();
  const Placements placements = placements_of(program, lifetimes.finish(), counted);
  return Machine<kObserved>(program, observer, &placements).run();
}

}  // namespace

Execution execute(const Program& program) {
  return play<false>(program, nullptr);
}

Execution execute(const Program& program, Observer& observer) {
  return play<true>(program, &observer);
}

Execution execute_without_addresses(const Program& program) {
  if (!places_ahead(program)) return Machine<false>(program, nullptr).run();
  BlockLifetimes lifetimes(program);
  Execution counted = Machine<true>(program, &lifetimes).run();
  if (counted.status == RunStatus::ok && !placements_fit(program, lifetimes.finish()))
    counted.status = RunStatus::oom;
  return counted;
}

}  // namespace plimsoll
