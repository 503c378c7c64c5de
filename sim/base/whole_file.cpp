#include "base/whole_file.hpp"

#include "base/diagnostic.hpp"

#include <cerrno>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

std::error_code last_error() {
  return {errno != 0 ? errno : EIO, std::generic_category()};
}

[[noreturn]] void refuse_file(const fs::path& path, std::string message) {
  throw InputError(
      {{Severity::error, Location{path.string(), 0, 0}, std::move(message), std::string{}}});
}

}  // namespace

WholeFile::WholeFile(const fs::path& path) : named_(path), target_(path) {
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  // Else only the move would tell, when others have been made.
  if (fs::is_directory(there)) refuse(std::make_error_code(std::errc::is_a_directory));
  const bool is_other = fs::exists(there) && !fs::is_regular_file(there);
  if (fs::is_regular_file(there)) {
    fs::path canonical = fs::canonical(path, unknown);
    if (!unknown) target_ = std::move(canonical);
  }
  if (!is_other) {
    beside_ = target_;
    beside_ += fmt::format(".{}.partial", getpid());
  }
  errno = 0;
  out_.open(is_other ? target_ : beside_, std::ios::binary | std::ios::trunc);
  if (!out_) refuse(last_error());
}

WholeFile::~WholeFile() {
  if (beside_.empty()) return;
  out_.close();
  std::error_code ignored;
  fs::remove(beside_, ignored);
}

void WholeFile::ready() {
  if (!out_.is_open()) return;
  if (out_) errno = 0;  // else it is that of the piece that failed
  out_.close();
  if (!out_) refuse(last_error());
}

void WholeFile::done() {
  ready();
  std::error_code problem;
  if (!beside_.empty()) fs::rename(beside_, target_, problem);
  if (problem) refuse(problem);
  beside_.clear();
}

void WholeFile::refuse(const std::error_code& problem) const {
  // The file is made beside the one that it replaces: that takes a folder that can be written to.
  const fs::path parent = target_.parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  const bool is_of_folder = problem == std::errc::permission_denied ||
                            problem == std::errc::read_only_file_system ||
                            problem == std::errc::operation_not_permitted;
  if (is_of_folder && !beside_.empty() && access(folder.c_str(), W_OK) != 0)
    refuse_file(named_, fmt::format("cannot be written: no file can be made in the folder `{}`: {}",
                                    folder.string(), problem.message()));
  refuse_file(named_, fmt::format("cannot be written: {}", problem.message()));
}

std::string read_whole_file(const fs::path& path, std::uintmax_t most, std::string_view what) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) refuse_file(path, "there is no such file");
  if (fs::is_directory(status)) refuse_file(path, "is a directory, expected a file");
  if (!fs::is_regular_file(status)) refuse_file(path, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) refuse_file(path, "cannot be read: " + error.message());
  if (size > most)
    refuse_file(
        path, fmt::format("has {} bytes; {} of more than {} bytes are not read", size, what, most));
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_file(path, "cannot be opened: " + last_error().message());
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (file.bad() || file.gcount() != static_cast<std::streamsize>(size))
    refuse_file(path, "cannot be read to its end");
  return bytes;
}

void write_whole_file(const fs::path& path, std::string_view bytes) {
  WholeFile file(path);
  file.stream().write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.done();
}

}  // namespace plimsoll
