/// Platforms from texts, for tests.
#pragma once

#include "platform/file/platform_file.hpp"

#include <map>
#include <string>
#include <vector>

namespace plimsoll::test {

/// Documents by name, for `extends`.
using Files = std::map<std::string, std::string>;

struct Reading {
  Platform platform;
  std::vector<std::string> messages;  ///< in the order in which they were found
};

inline Reading read_text(const std::string& text, const Files& files = {}) {
  Reading reading;
  Diagnostics diagnostics;
  const auto resolver = [&](const Located<std::string>& name) -> std::optional<Node> {
    const auto found = files.find(name.value);
    if (found == files.end()) return std::nullopt;
    return parse_document(found->second, found->first + ".yaml");
  };
  reading.platform = read_platform(parse_document(text, "p.yaml"), diagnostics, resolver);
  for (const Diagnostic& d : diagnostics.all()) reading.messages.push_back(to_text(d));
  return reading;
}

using Messages = std::vector<std::string>;

}  // namespace plimsoll::test
