#include "base/whole_file.hpp"

#include "base/diagnostic.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

std::error_code write(const fs::path& path, std::string_view bytes) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) return {};
  return {errno != 0 ? errno : EIO, std::generic_category()};
}

std::error_code write_beside_and_move(const fs::path& path, std::string_view bytes) {
  fs::path beside = path;
  beside += fmt::format(".{}.partial", getpid());
  std::error_code problem = write(beside, bytes);
  if (!problem) fs::rename(beside, path, problem);
  std::error_code ignored;
  if (problem) fs::remove(beside, ignored);
  return problem;
}

[[noreturn]] void refuse(const fs::path& path, std::string message) {
  throw InputError(
      {{Severity::error, Location{path.string(), 0, 0}, std::move(message), std::string{}}});
}

}  // namespace

void write_whole_file(const fs::path& path, std::string_view bytes) {
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  const bool is_other =
      fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there);
  const fs::path target = fs::is_regular_file(there) ? fs::canonical(path, unknown) : path;
  const std::error_code problem =
      is_other ? write(path, bytes) : write_beside_and_move(unknown ? path : target, bytes);
  if (problem) refuse(path, fmt::format("cannot be written: {}", problem.message()));
}

std::string read_whole_file(const fs::path& path, std::uintmax_t most, std::string_view what) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) refuse(path, "there is no such file");
  if (fs::is_directory(status)) refuse(path, "is a directory, expected a file");
  if (!fs::is_regular_file(status)) refuse(path, "is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) refuse(path, "cannot be read: " + error.message());
  if (size > most)
    refuse(path,
           fmt::format("has {} bytes; {} of more than {} bytes are not read", size, what, most));
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, "cannot be opened; may you read it?");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (file.bad() || file.gcount() != static_cast<std::streamsize>(size))
    refuse(path, "cannot be read to its end");
  return bytes;
}

}  // namespace plimsoll
