/// Any bytes give a snapshot whose every device is a trace, or one InputError; what was read is
/// read again as it is written.
#include "base/diagnostic.hpp"
#include "memory/snapshot/snapshot.hpp"
#include "memory/trace/replay.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    const Snapshot snapshot = parse_snapshot(std::move(bytes), "fuzz.pickle");
    const Snapshot again = parse_snapshot(to_pickle(snapshot), "again");
    if (again.devices.size() != snapshot.devices.size()) std::abort();
    for (std::size_t d = 0; d < again.devices.size(); ++d) {
      if (again.devices[d].segments != snapshot.devices[d].segments) std::abort();
      const Trace trace = trace_of(snapshot.devices[d], "fuzz.pickle");
      (void)replay(trace, Bytes::unlimited(), {.kind = AllocatorKind::caching}, "fuzz.pickle");
    }
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
