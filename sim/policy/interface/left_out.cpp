#include "policy/interface/left_out.hpp"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

std::string left_out_text(std::span<const LeftOut> left_out) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const LeftOut& it : left_out) by_reason[it.why].push_back(it.policy);
  std::string text;
  for (const auto& [why, policies] : by_reason)
    text += fmt::format("; not asked: {} ({})", fmt::join(policies, ", "), why);
  return text;
}

}  // namespace plimsoll
