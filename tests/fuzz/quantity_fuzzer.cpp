/// Any text gives a quantity that is not negative, or a problem; never both.
#include "base/quantity_text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

namespace {

template <class T>
void parse_as(std::string_view text) {
  const Parsed<T> parsed = parse_quantity<T>(text, true);
  if (parsed.value.has_value() != parsed.problem.empty()) std::abort();
  if (parsed.value && *parsed.value < T{}) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_as<Bytes>(text);
  parse_as<Time>(text);
  parse_as<Flops>(text);
  parse_as<ByteRate>(text);
  parse_as<FlopRate>(text);
  parse_as<Power>(text);
  parse_as<Energy>(text);
  parse_as<EnergyPerByte>(text);
  parse_as<EnergyPerFlop>(text);
  parse_as<Ratio>(text);
  return 0;
}
