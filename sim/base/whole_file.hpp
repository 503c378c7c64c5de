/// Files that are read and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace plimsoll {

/// Writes `bytes` to a file beside `path` and moves it there, so that what is at `path` is at every
/// moment the old file or the new one. A link is followed; what is there and is no file (a device,
/// a pipe) is written to as it is. Throws InputError at `path` where it cannot be written; nothing
/// is left behind.
void write_whole_file(const std::filesystem::path& path, std::string_view bytes);

/// The same for what is written piece by piece: it comes to its place with done(), and is gone
/// without.
class WholeFile {
 public:
  /// Throws InputError where nothing can be written beside `path`.
  explicit WholeFile(const std::filesystem::path& path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// What cannot be written is told by ready(), or by done() where that was not called.
  [[nodiscard]] std::ostream& stream() { return out_; }
  /// Ends the writing, so that only the move is left. Throws InputError.
  void ready();
  /// Brings the file to its place. Throws InputError. To be called once, at the end.
  void done();

 private:
  void refuse(const std::error_code& problem) const;

  std::filesystem::path named_;   ///< as the user wrote it
  std::filesystem::path target_;  ///< what it leads to
  std::filesystem::path beside_;  ///< empty where the target is written as it is
  std::ofstream out_;
};
/// The bytes of a regular file of at most `most` bytes; `what` names its kind for the message about
/// a larger one ("plans"). Throws InputError at `path`.
[[nodiscard]] std::string read_whole_file(const std::filesystem::path& path, std::uintmax_t most,
                                          std::string_view what);

}  // namespace plimsoll
