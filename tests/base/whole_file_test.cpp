#include "base/whole_file.hpp"

#include "base/diagnostic.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_CASE("a file is written anew and replaced, and nothing is left beside it") {
  const test::TemporaryFolder folder;
  write_whole_file(folder / "a", "one");
  CHECK(text_of(folder / "a") == "one");
  write_whole_file(folder / "a", "two");
  CHECK(text_of(folder / "a") == "two");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("a link stays a link, and its file is written") {
  const test::TemporaryFolder folder;
  write_whole_file(folder / "file", "old");
  fs::create_symlink("file", folder / "link");
  write_whole_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(text_of(folder / "file") == "new");
}

TEST_CASE("a device is written to, not replaced") {
  const test::TemporaryFolder folder;
  // A node of one's own needs rights; a link to the null device is followed to it.
  fs::create_symlink("/dev/null", folder / "null");
  write_whole_file(folder / "null", "text");
  CHECK(fs::is_symlink(folder / "null"));
  CHECK(fs::is_character_file(folder / "null"));
  CHECK(folder.names().size() == 1);
}

TEST_CASE("what cannot be written is told, and nothing is left behind") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "taken");
  CHECK_THROWS_AS(write_whole_file(folder / "taken", "x"), InputError);
  CHECK_THROWS_AS(write_whole_file(folder / "none/a", "x"), InputError);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("what is ready waits for its move") {
  const test::TemporaryFolder folder;
  write_whole_file(folder / "a", "old");
  WholeFile file(folder / "a");
  file.stream() << "new";
  file.ready();
  CHECK(text_of(folder / "a") == "old");
  file.done();
  CHECK(text_of(folder / "a") == "new");
  // A device that takes nothing says so before anything else is done.
  WholeFile full("/dev/full");
  full.stream() << "text";
  CHECK_THROWS_AS(full.ready(), InputError);
  CHECK_THROWS_AS(WholeFile(folder.path()), InputError);
}

TEST_CASE("what is written piece by piece comes to its place when it is done") {
  const test::TemporaryFolder folder;
  write_whole_file(folder / "a", "old");
  WholeFile file(folder / "a");
  file.stream() << "one, ";
  file.stream() << "two";
  CHECK(text_of(folder / "a") == "old");
  file.done();
  CHECK(text_of(folder / "a") == "one, two");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("what is not finished leaves nothing behind") {
  const test::TemporaryFolder folder;
  { WholeFile(folder / "a").stream() << "half"; }
  CHECK(folder.names().size() == 0);
  CHECK_THROWS_AS(WholeFile(folder / "none/a"), InputError);
}

TEST_CASE("a disk that fills up is told") {
  WholeFile file("/dev/full");
  file.stream() << std::string(1 << 20, 'x');
  CHECK_THROWS_AS(file.done(), InputError);
}

}  // namespace
}  // namespace plimsoll
