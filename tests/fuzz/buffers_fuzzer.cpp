/// Any bytes give a list of buffers or one InputError; what the list is placed by a rule holds, and
/// is read back as it was written.
#include "base/diagnostic.hpp"
#include "memory/placement/file/buffers_csv.hpp"
#include "memory/placement/greedy.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const BufferList list = parse_buffers_csv(text, "fuzz.csv");
    const Offsets offsets = place_by_rule(list.buffers, PlacementRule::by_size);
    if (collision_in(list.buffers, offsets)) std::abort();
    if (end_of(list.buffers, offsets) < lowest_end(list.buffers)) std::abort();
    const BufferList again = parse_buffers_csv(buffers_csv(list, offsets), "fuzz.csv");
    if (again.ids != list.ids) std::abort();
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
