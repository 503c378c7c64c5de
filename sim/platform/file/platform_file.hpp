/// Platforms from files.
///
/// The keys are those of `platform_json_schema()`; docs/formats.md shows them. Three of them keep
/// files short:
///
///   extends: other     starts from another platform; mappings are merged key by key, the last word
///                      wins, anything else replaces. A number that is overridden (here or with
///                      `--set`) loses the provenance that it had.
///   cluster: {count: 8, shared: [dram], topology: switch,
///             link: {name: nvlink, bandwidth: 450 GB/s}}
///                      makes gpu0..gpu7, hbm0..hbm7, pcie0..pcie7 out of gpu, hbm and pcie, leaves
///                      dram single, and joins each hbm to the switch `nvlink` by links nvlink0..7
///                      (chain, ring and mesh: nvlink0-1, nvlink1-2, ...). A link with an end that
///                      is copied is copied; one that names a copy (`hbm3`) or shared ends is not.
///   switches: [plx0]   crossings of links, which hold no data: Memory::is_switch.
///
/// Provenance paths name keys as they are written, before the cluster is copied out.
#pragma once

#include "base/document.hpp"
#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace plimsoll {

/// Finds the document that an `extends` names, seen from where it is written; nothing if there is
/// none. May throw InputError, whose diagnostics are passed on.
using PlatformResolver = std::function<std::optional<Node>(const Located<std::string>& name)>;

/// Platforms may extend each other this many times.
inline constexpr std::size_t kMaxExtends = 16;

/// Reads a platform. All errors and warnings go to `diagnostics`; with errors, the result is not a
/// valid platform. Warned about: powers above the board's limit, rates that a number beside them
/// can never let be reached.
[[nodiscard]] Platform read_platform(const Node& node, Diagnostics& diagnostics,
                                     const PlatformResolver& resolver = {});

/// Reads a file; `extends` looks for NAME.yaml beside the file that names it. Throws InputError;
/// warnings are left in `diagnostics`.
[[nodiscard]] Platform load_platform(const std::filesystem::path& path, Diagnostics& diagnostics);

/// JSON Schema of the format, for editors.
[[nodiscard]] std::string platform_json_schema();

}  // namespace plimsoll
