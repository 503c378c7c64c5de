#include "memory/trace/trace.hpp"

#include "base/diagnostic.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

Trace trace_in(const std::string& text) {
  return read_trace(parse_document(text, "t.json"));
}

std::vector<std::string> problems_of_trace(const std::string& text) {
  std::vector<std::string> problems;
  try {
    (void)trace_in(text);
  } catch (const InputError& error) {
    for (const Diagnostic& it : error.diagnostics()) problems.push_back(to_text(it));
  }
  return problems;
}

using Problems = std::vector<std::string>;
using Op = TraceStep::Op;

}  // namespace

TEST_CASE("a trace is a list of steps, whose other keys are not looked at") {
  const Trace trace = trace_in(
      R"([{"op": "alloc", "id": "x", "bytes": 513, "stream": 7, "after": {"requested": 1}},
          {"op": "alloc", "id": 2, "size": 8},
          {"op": "record_stream", "id": "x", "stream": 0},
          {"op": "free", "id": "x", "result": []},
          {"op": "events_complete"},
          {"op": "alloc", "id": "x", "bytes": 0}])");
  CHECK(trace.blocks == std::vector<std::string>{"x", "2", "x"});
  REQUIRE(trace.steps.size() == 6);
  CHECK(trace.steps[0].bytes == Bytes{513});
  // Streams are numbered as they appear: 7, then 0.
  CHECK(trace.steps[0].stream == 0);
  CHECK(trace.steps[1].stream == 1);
  CHECK(trace.steps[2].op == Op::record_stream);
  CHECK(trace.steps[2].stream == 1);
  CHECK(trace.steps[3].op == Op::free);
  CHECK(trace.steps[3].block == 0);
  CHECK(trace.steps[4].op == Op::events_complete);
  CHECK(trace.steps[5].block == 2);
  CHECK_FALSE(trace.capacity);
}

TEST_CASE("a trace may be in a mapping that tells the size of the memory") {
  const std::string steps = R"([{"op": "alloc", "id": "x", "bytes": 1}])";
  for (const char* key : {"steps", "trace", "operations"})
    CHECK(trace_in(R"({"name": "t", "capacity": 100, ")" + std::string(key) + "\": " + steps + "}")
              .capacity == Bytes{100});
  CHECK(trace_in(R"({"settings": {"cap": 7}, "steps": )" + steps + "}").capacity == Bytes{7});
  CHECK_FALSE(trace_in(R"({"settings": {}, "steps": )" + steps + "}").capacity);
}

TEST_CASE("all that is wrong with a trace is told, with its place") {
  CHECK(problems_of_trace("5") ==
        Problems{"t.json:1:1: error: found `5`, expected a list of steps, or a mapping with it as "
                 "`steps`, `trace` or `operations`"});
  CHECK(problems_of_trace(R"([{"op": "alloc", "id": "x", "bytes": 1},
{"op": "fre", "id": "x"},
{"op": "free", "id": "y"},
{"op": "alloc", "id": "x", "bytes": 1},
{"op": "alloc", "id": "z", "bytes": -1},
{"op": "alloc", "id": "w"},
{"op": "free"},
{"id": "x"},
7,
{"op": "record_stream", "id": "x"}])") ==
        Problems{"t.json:2:8: error: found `fre`, expected one of `alloc`, `free`, "
                 "`record_stream`, `events_complete`; did you mean `free`?",
                 "t.json:3:22: error: there is no block `y` at this step; there is only `x`",
                 "t.json:4:23: error: block `x` is there already; expected that it is freed before "
                 "it is allocated again",
                 "t.json:5:37: error: found `-1`, expected a whole number from 0 to "
                 "9007199254740992",
                 "t.json:6:1: error: `bytes` is missing", "t.json:7:1: error: `id` is missing",
                 "t.json:8:1: error: `op` is missing",
                 "t.json:9:1: error: found `7`, expected a step such as {\"op\": \"free\", \"id\": "
                 "\"x\"}",
                 "t.json:10:1: error: `stream` is missing"});
  CHECK(problems_of_trace(R"([{"op": "alloc", "id": "x", "byts": 1}])") ==
        Problems{"t.json:1:29: error: found `byts`, expected `bytes`"});
  CHECK(problems_of_trace(
            R"({"capacty": 5, "steps": [{"op": "alloc", "id": "x", "bytes": 1, "strem": 3}]})") ==
        Problems{"t.json:1:2: error: found `capacty`, expected `capacity`",
                 "t.json:1:65: error: found `strem`, expected `stream`"});
}

}  // namespace plimsoll
