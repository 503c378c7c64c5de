/// Files that are read and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plimsoll {

/// Writes `bytes` to a file beside `path` and moves it there, so that what is at `path` is at every
/// moment the old file or the new one. A link is followed; what is there and is no file (a device,
/// a pipe) is written to as it is. Throws InputError at `path` where it cannot be written; nothing
/// is left behind.
void write_whole_file(const std::filesystem::path& path, std::string_view bytes);

/// The bytes of a regular file of at most `most` bytes; `what` names its kind for the message about
/// a larger one ("plans"). Throws InputError at `path`.
[[nodiscard]] std::string read_whole_file(const std::filesystem::path& path, std::uintmax_t most,
                                          std::string_view what);

}  // namespace plimsoll
