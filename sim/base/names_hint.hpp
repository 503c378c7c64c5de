/// What to say of a name that is none of those there are.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

/// "did you mean `hbm`?" where one is near; else "there are `sram` and `flash`", the first dozen of
/// them; "there is only `sram`"; "there are none". Complexity as nearest() of base/diagnostic.hpp.
[[nodiscard]] std::string hint_of_names(std::string_view found, std::span<const std::string> names);

}  // namespace plimsoll
