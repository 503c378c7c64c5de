#include "policy/parallel/named_copies.hpp"

#include "base/names_hint.hpp"

#include <fmt/format.h>

namespace plimsoll {

void tell_unknown_name(const Located<std::string>& name, const char* kind,
                       std::span<const std::string> known, const Platform& platform,
                       Diagnostics& diagnostics) {
  diagnostics.error(name.where,
                    fmt::format("platform `{}` has no {} `{}`", platform.name, kind, name.value),
                    hint_of_names(name.value, known));
}

}  // namespace plimsoll
