/// Any bytes give a tree or one InputError, within the caps, whatever is done with the tree.
#include "base/document.hpp"
#include "base/repeat.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

namespace {

std::size_t count_values(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items()) count += count_values(item);
  for (const Node::Entry& entry : node.entries()) count += count_values(entry.value);
  return count;
}

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr DocumentLimits kLimits{.bytes = 1 << 20, .depth = 64, .nodes = 20'000};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Node root = parse_document(text, "fuzz", kLimits);
    check(count_values(root) <= kLimits.nodes);
    Diagnostics diagnostics;
    expand_repeats(root, kLimits, diagnostics);
    check(diagnostics.has_errors() || count_values(root) <= kLimits.nodes);
    root.set("a.0.b", parse_document("x", "set"), diagnostics);
  } catch (const InputError& e) {
    check(!e.diagnostics().empty());
  }
  return 0;
}
