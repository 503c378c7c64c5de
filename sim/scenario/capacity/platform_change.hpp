/// Changes of a platform that show what holds a run back.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <optional>
#include <span>
#include <string>

namespace plimsoll {

/// What can be made larger or faster, one at a time.
enum class PlatformChange : std::uint8_t {
  capacity,          ///< half as much again of each memory in which operators run
  compute,           ///< twice the rates of the processors
  memory_bandwidth,  ///< twice that of the memories in which operators run
  links,             ///< twice that of every link
  storage            ///< twice that of the other memories
};
[[nodiscard]] std::span<const PlatformChange> platform_changes();
[[nodiscard]] Part part_of(PlatformChange);

/// Changes `platform`; says how ("+12 GiB of hbm"), or nothing where it has nothing of the kind
/// that has a limit.
[[nodiscard]] std::optional<std::string> apply(PlatformChange change, Platform& platform);

}  // namespace plimsoll
