// Any bytes as a lock file of a suite, and as a recorded execution: read, and written as they were
// read. Errors are InputErrors and nothing else.
#include "scenario/suite/baseline.hpp"
#include "scenario/suite/execution_difference.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace plimsoll;

constexpr DocumentLimits kLimits{.bytes = 1 << 20, .depth = 64, .nodes = 20'000};

void require(bool holds) {
  if (!holds) std::abort();
}

void as_lock_file(std::string_view text) {
  try {
    const Baseline baseline = read_baseline(parse_document(text, "fuzz", kLimits));
    const std::string written = to_text(baseline);
    require(to_text(read_baseline(parse_document(written, "again"))) == written);
  } catch (const InputError&) {
  }
}

void as_execution(std::string_view text) {
  const auto execution = parse_execution(text);
  if (!execution) return;
  const std::string written = to_text(*execution);
  const auto again = parse_execution(written);
  require(again && to_text(*again) == written);
  require(!explain_difference(*execution, *again).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_lock_file(text);
  as_execution(text);
  return 0;
}
