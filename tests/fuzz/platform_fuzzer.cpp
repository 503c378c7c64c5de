/// Any bytes give a platform whose ids hold, or InputError with its diagnostics; a platform can be
/// routed and compared whatever it looks like.
#include "base/document.hpp"
#include "platform/core/break_even.hpp"
#include "platform/file/platform_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_ids(const Platform& platform) {
  for (const Processor& p : platform.processors) {
    check(static_cast<std::size_t>(p.memory) < platform.memories.size());
  }
  for (const Link& link : platform.links) {
    check(link.between[0] != link.between[1]);
    for (const MemoryId end : link.between) {
      check(static_cast<std::size_t>(end) < platform.memories.size());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr DocumentLimits kLimits{.bytes = 1 << 18, .depth = 64, .nodes = 20'000};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Node base = parse_document(
        "{platform: base, memories: {m: {capacity: 1 GB, bandwidth: 1 GB/s}}, "
        "processors: {p: {memory: m}}}",
        "base.yaml");
    Diagnostics diagnostics;
    const Platform platform = read_platform(parse_document(text, "fuzz", kLimits), diagnostics,
                                            [&](const Located<std::string>&) { return base; });
    diagnostics.throw_if_errors();
    check_ids(platform);
    (void)platform.worst_quality();
    if (platform.memories.size() <= 64) (void)break_even(platform, Topology(platform));
  } catch (const InputError& e) {
    check(!e.diagnostics().empty());
  }
  return 0;
}
