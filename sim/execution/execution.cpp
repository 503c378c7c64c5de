#include "execution/execution.hpp"

#include "execution/machine.hpp"

#include <array>

namespace plimsoll {

const char* to_text(StallCause cause) {
  constexpr std::array names{"transfer", "dependency", "memory"};
  return names[static_cast<std::size_t>(cause)];
}

Execution execute(const Program& program) {
  return Machine<false>(program).run();
}

Execution execute(const Program& program, Observer& observer) {
  return Machine<true>(program, &observer).run();
}

}  // namespace plimsoll
