#include "memory/snapshot/pickle.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using namespace std::string_literals;

std::string problem_of_pickle(const std::string& bytes, const PickleLimits& limits = {}) {
  try {
    (void)parse_pickle(bytes, "p", limits);
  } catch (const InputError& error) {
    return to_text(error.diagnostics().front());
  }
  return "";
}

/// As Python would print it.
std::string shown(const Pickle& pickle, const PickleValue& value) {
  std::string text;
  const auto list = [&](const char* open, const char* close) {
    text = open;
    for (const std::uint32_t item : pickle.items(value)) text += shown(pickle, pickle[item]) + " ";
    return text + close;
  };
  switch (value.kind) {
    case PickleKind::list:
      return list("[", "]");
    case PickleKind::tuple:
      return list("(", ")");
    case PickleKind::dictionary:
      return list("{", "}");
    default:
      return pickle.describe(value);
  }
}

std::string read_back(const std::string& bytes) {
  const Pickle pickle = parse_pickle(bytes, "p");
  return shown(pickle, pickle.root());
}

}  // namespace

TEST_CASE("what is written as a pickle is read back") {
  PickleWriter out;
  out.begin_dictionary();
  out.text("numbers");
  out.begin_list();
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{255}, std::int64_t{256}, std::int64_t{65'535},
        std::int64_t{65'536}, std::int64_t{-1}, std::int64_t{INT32_MAX}, std::int64_t{INT32_MIN},
        std::int64_t{INT32_MAX} + 1, std::int64_t{INT64_MIN}, std::int64_t{1} << 53})
    out.integer(number);
  out.end_list();
  out.text("");
  out.none();
  out.end_dictionary();
  CHECK(read_back(out.finish()) ==
        "{`numbers` [`0` `255` `256` `65535` `65536` `-1` `2147483647` `-2147483648` `2147483648` "
        "`-9223372036854775808` `9007199254740992` ] `` nothing }");
}

TEST_CASE("long lists are written in batches") {
  // Two full batches and one of 500; of the bytes of a list of nothing but nothing, `e` ends a batch.
  // A list in it, and a dictionary, are one value each.
  PickleWriter out;
  out.begin_list();
  for (std::size_t i = 0; i < 2 * PickleWriter::kBatch + 498; ++i) out.none();
  out.begin_dictionary();
  out.end_dictionary();
  out.begin_list();
  out.end_list();
  out.end_list();
  const std::string bytes = out.finish();
  CHECK(std::ranges::count(bytes, 'e') == 3 + 1);
  std::size_t longest = 0, batch = 0;
  for (const char c : bytes) {
    batch = c == 'N' ? batch + 1 : c == 'e' ? 0 : batch;
    longest = std::max(longest, batch);
  }
  CHECK(longest == PickleWriter::kBatch);
  const Pickle read = parse_pickle(bytes, "p");
  CHECK(read.items(read.root()).size() == 2 * PickleWriter::kBatch + 500);
}

TEST_CASE("every opcode of plain data is read") {
  // Made by hand from the description of the opcodes in Python's pickletools.
  CHECK(read_back("\x80\x02(K\x01K\x02t."s) == "(`1` `2` )");
  CHECK(read_back("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00(K\x01l."s) == "[`1` ]");
  CHECK(read_back("\x80\x02(X\x01\x00\x00\x00"s + "aNd."s) == "{`a` nothing }");
  CHECK(read_back("\x80\x02K\x01\x85K\x02K\x03\x86K\x04K\x05K\x06\x87\x87."s) ==
        "((`1` ) (`2` `3` ) (`4` `5` `6` ) )");
  CHECK(read_back("\x80\x02]K\x07"s + "a."s) == "[`7` ]");
  CHECK(read_back("\x80\x02}\x8c\x01kK\x07s."s) == "{`k` `7` }");
  CHECK(read_back("\x80\x03\x88\x89\x86."s) == "(`True` `False` )");
  CHECK(read_back("\x80\x02)."s) == "()");
  CHECK(read_back("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."s) == "`1.5`");
  CHECK(read_back("\x80\x02\x8a\x00."s) == "`0`");
  CHECK(read_back("\x80\x02\x8a\x02\x00\xff."s) == "`-256`");
  CHECK(read_back("\x80\x02J\xff\xff\xff\xff."s) == "`-1`");
  // A text is remembered by each of the four ways and recalled by each of the two.
  CHECK(read_back("\x80\x04(\x8c\x01x\x94h\x00q\x05h\x05r\x06\x00\x00\x00j\x06\x00\x00\x00l."s) ==
        "[`x` `x` `x` `x` ]");
}

TEST_CASE("a list may be shared, and contain itself") {
  CHECK(read_back("\x80\x02]q\x00K\x01"s + "ah\x00\x86."s) == "([`1` ] [`1` ] )");
  const Pickle pickle = parse_pickle("\x80\x02]q\x00h\x00"s + "a."s, "p");
  CHECK(&pickle[pickle.items(pickle.root()).front()] == &pickle.root());
}

TEST_CASE("the last of equal keys counts") {
  const Pickle pickle = parse_pickle("\x80\x02}(\x8c\x01kK\x01\x8c\x01kK\x02u."s, "p");
  REQUIRE(pickle.find(pickle.root(), "k") != nullptr);
  CHECK(pickle.find(pickle.root(), "k")->integer == 2);
  CHECK(pickle.find(pickle.root(), "q") == nullptr);
}

TEST_CASE("what is no plain data is refused with its byte") {
  // c is GLOBAL, R is REDUCE: what calls functions in Python.
  CHECK(problem_of_pickle("\x80\x02"s + "cos\nsystem\n(X\x02\x00\x00\x00lstR."s) ==
        "p: error: byte 2: found opcode 0x63 (`c`), expected one of plain data");
  CHECK(problem_of_pickle("\x80\x02K\x01R."s) ==
        "p: error: byte 4: found opcode 0x52 (`R`), expected one of plain data");
  CHECK(problem_of_pickle("\x80\x05N."s).empty());
  CHECK(problem_of_pickle("\x80\x06N."s) ==
        "p: error: byte 1: found protocol 6, expected one from 2 to 5");
  CHECK(problem_of_pickle("") ==
        "p: error: byte 0: found another beginning than that of a pickle of protocol 2 to 5, the "
        "byte 0x80");
  CHECK(problem_of_pickle("{\"a\": 1}").starts_with("p: error: byte 0: found another beginning"));
  CHECK(problem_of_pickle("\x80\x02N.N"s) ==
        "p: error: byte 4: found bytes behind the end of the pickle, expected none");
  CHECK(problem_of_pickle("\x80\x02NN."s) ==
        "p: error: byte 4: found 2 values at the end, expected one");
  CHECK(problem_of_pickle("\x80\x02(N."s) ==
        "p: error: byte 4: found the end of the pickle within a list");
  CHECK(problem_of_pickle("\x80\x02"s + "a."s) ==
        "p: error: byte 2: found 0 values for an opcode, expected 2");
  CHECK(problem_of_pickle("\x80\x02NN"s + "a."s) ==
        "p: error: byte 4: found nothing, expected a list to add to");
  CHECK(problem_of_pickle("\x80\x02}(Nu."s) == "p: error: byte 5: found a key without a value");
  CHECK(problem_of_pickle("\x80\x02h\x07."s) ==
        "p: error: byte 2: found entry 7 of the memo, which is empty");
  CHECK(problem_of_pickle("\x80\x02\x8a\x09"s + std::string(9, '\1') + '.') ==
        "p: error: byte 2: found a number of 9 bytes, expected at most 8");
  CHECK(problem_of_pickle("\x80\x02\x8c\x01\xff."s) ==
        "p: error: byte 4: found a byte that is not UTF-8 in a text");
  CHECK(problem_of_pickle("\x80\x02X\xff\xff\xff\xff"s + "abc."s) ==
        "p: error: byte 7: found the end of the file, expected 4294967295 bytes of a text");
  CHECK(problem_of_pickle("\x80\x02N"s) ==
        "p: error: byte 3: found the end of the file, expected 1 byte of an opcode");
}

TEST_CASE("a pickle that breaks off anywhere is refused") {
  const std::string whole = "\x80\x02}(\x8c\x01k](K\x01M\x02\x00J\x03\x00\x00\x00"s + "eu.";
  CHECK(problem_of_pickle(whole).empty());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK_FALSE(problem_of_pickle(whole.substr(0, size)).empty());
  }
}

TEST_CASE("pickles are bounded in depth and in values, however they repeat themselves") {
  CHECK(problem_of_pickle("\x80\x02"s + std::string(11, '('), {.depth = 10}) ==
        "p: error: byte 12: found more than 10 levels");
  CHECK(problem_of_pickle("\x80\x02("s + std::string(11, 'N'), {.values = 10}) ==
        "p: error: byte 13: found more than 10 values");
  std::string shared = "\x80\x02]q\x00("s;
  for (int i = 0; i < 11; ++i) shared += "h\x00"s;
  CHECK(problem_of_pickle(shared + "e.", {.values = 10}).find("more than 10 values") !=
        std::string::npos);
  CHECK(problem_of_pickle("\x80\x02Nr\xff\xff\xff\xff."s).find("of the memo") != std::string::npos);
}

}  // namespace plimsoll
