#include "scenario/document/quoted_text.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace plimsoll
