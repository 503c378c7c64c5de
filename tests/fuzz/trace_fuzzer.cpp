/// Any bytes give a trace that plays on every allocator, or one InputError.
#include "base/diagnostic.hpp"
#include "memory/trace/replay.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Trace trace = read_trace(parse_document(text, "fuzz.json"));
    const Bytes capacity = trace.capacity.value_or(Bytes{std::int64_t{1} << 34});
    for (const AllocatorKind kind : {AllocatorKind::ideal, AllocatorKind::first_fit,
                                     AllocatorKind::caching, AllocatorKind::bfc}) {
      const Replayed it = replay(trace, capacity, {.kind = kind}, "fuzz.json");
      if (it.load > it.counters.peak.reserved) std::abort();
    }
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
