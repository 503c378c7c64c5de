#include "memory/placement/file/buffers_csv.hpp"

#include "base/diagnostic.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// What is wrong with a text, a line each.
std::string problems_of(const std::string& text) {
  try {
    (void)parse_buffers_csv(text, "b.csv");
  } catch (const InputError& error) {
    std::string all;
    for (const Diagnostic& it : error.diagnostics()) all += to_text(it) + '\n';
    return all;
  }
  return "";
}

}  // namespace

TEST_CASE(
    "columns in any order, quotes, blanks and empty lines are read, and written in one form") {
  const BufferList list = parse_buffers_csv(
      "\xEF\xBB\xBFsize, upper ,lower,offset,id\r\n16,3,-1,,\"a,\"\"b\"\r\n\r\n 8 ,9,3,32,c\n",
      "b.csv");
  CHECK(list.ids == std::vector<std::string>{"a,\"b", "c"});
  CHECK(list.lines == std::vector<int>{2, 4});
  CHECK(list.buffers[0].lower == -1);
  CHECK(list.buffers[0].upper == 3);
  CHECK(list.buffers[0].size == Bytes{16});
  CHECK_FALSE(list.buffers[0].offset);
  CHECK(list.buffers[1].offset == Bytes{32});
  const std::string text = buffers_csv(list, Offsets{Bytes{0}, Bytes{32}});
  CHECK(text == "id,lower,upper,size,offset\n\"a,\"\"b\",-1,3,16,0\nc,3,9,8,32\n");
  CHECK(buffers_csv(parse_buffers_csv(text, "b.csv"), Offsets{Bytes{0}, Bytes{32}}) == text);
}

TEST_CASE("an alignment is read, and written where the file has the column") {
  const std::string text = "id,lower,upper,size,alignment,offset\n";
  const BufferList list =
      parse_buffers_csv(text + "a,0,3,16,64,\nb,0,3,4,,\nc,0,3,4,8,16\n", "b.csv");
  CHECK(list.buffers[0].alignment == Bytes{64});
  CHECK(list.buffers[1].alignment == Bytes{1});
  CHECK(list.buffers[2].offset == Bytes{16});
  CHECK(buffers_csv(list, Offsets{Bytes{64}, Bytes{0}, Bytes{16}}) ==
        text + "a,0,3,16,64,64\nb,0,3,4,1,0\nc,0,3,4,8,16\n");
}

TEST_CASE("what is wrong with a file is said with its place") {
  CHECK(problems_of("") ==
        "b.csv: error: has no header; expected the columns `id`, `lower`, "
        "`upper` and `size`\n");
  CHECK(problems_of("id,lower,uper,size\n") ==
        "b.csv:1:10: error: unknown column `uper`; did you mean `upper`?\n");
  CHECK(problems_of("id,lower,upper\n") ==
        "b.csv:1:1: error: the column `size` is missing; expected "
        "`id`, `lower`, `upper` and `size`\n");
  CHECK(problems_of("id,lower,upper,size,gaps\n") ==
        "b.csv:1:21: error: the column `gaps` is not supported; expected `id`, `lower`, "
        "`upper`, `size` and perhaps `offset` and `alignment`\n");
  const std::string aligned = "id,lower,upper,size,alignment,offset\n";
  CHECK(problems_of(aligned + "a,0,3,4,0,\n") ==
        "b.csv:2:9: error: `alignment` is `0`; expected a whole number of at least 1\n");
  CHECK(problems_of(aligned + "a,0,3,4,64,96\n") ==
        "b.csv:2:12: error: `offset` is 96; expected a multiple of the alignment 64\n");
  CHECK(problems_of("id,lower,upper,size,id\n") ==
        "b.csv:1:21: error: the column `id` is there twice\n");
  const std::string header = "id,lower,upper,size\n";
  CHECK(problems_of(header + "a,3,3,4\n") ==
        "b.csv:2:5: error: `upper` is 3 and `lower` 3; expected an end after the start\n");
  CHECK(problems_of(header + "a,0,3,-4\n") ==
        "b.csv:2:7: error: `size` is `-4`; expected a whole number of at least 0\n");
  CHECK(problems_of(header + "a,0,3,99999999999999999999\n") ==
        "b.csv:2:7: error: `size` is `99999999999999999999`; expected a whole number from 0 to "
        "1152921504606846976\n");
  CHECK(problems_of(header + "a,0,3,1.5\n") ==
        "b.csv:2:7: error: `size` is `1.5`; expected a whole "
        "number from 0 to 1152921504606846976\n");
  CHECK(problems_of(header + "a,0,3,4\na,0,3,4\n") ==
        "b.csv:3:1: error: the id `a` is there already, in line 2\n");
  CHECK(problems_of(header + "a,0,3\n,0,3,4\n") ==
        "b.csv:2:5: error: the row has 3 cells; expected 4, as in the header\n"
        "b.csv:3:1: error: the id is empty; expected a name\n");
  CHECK(problems_of(header + "\"a,0,3,4\n") ==
        "b.csv:2:1: error: the quote does not close on this line\n");
  CHECK(problems_of(header + "\"a\"b,0,3,4\n") ==
        "b.csv:2:4: error: found more behind the closing quote; expected a comma\n");
  // 2^59 + 2^59 is 2^60, the most; one more byte is too much.
  CHECK(problems_of(header + "a,0,3,576460752303423488\nb,4,5,576460752303423488\n").empty());
  CHECK(problems_of(header + "a,0,3,576460752303423488\nb,4,5,576460752303423489\n") ==
        "b.csv:3:7: error: all sizes together exceed 1152921504606846976 bytes\n");
  CHECK(
      problems_of("id,lower,upper,size,offset\na,0,3,4,0\nb,2,4,4,3\nc,3,4,4,0\n") ==
      "b.csv:3:1: error: `b` and `a` of line 2 are alive together, and share bytes at their given "
      "offsets\n");
}

TEST_CASE("a trailing comma is an empty cell") {
  CHECK(parse_buffers_csv("id,lower,upper,size,offset\na,0,3,4,\n", "b.csv").buffers.size() == 1);
}
