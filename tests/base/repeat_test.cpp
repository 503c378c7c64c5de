#include "base/repeat.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// The texts of a list of scalars, after expansion.
std::string expanded(const std::string& text, const DocumentLimits& limits = {}) {
  Diagnostics diagnostics;
  Node root = parse_document(text, "f");
  expand_repeats(root, limits, diagnostics);
  std::string result;
  for (const Diagnostic& d : diagnostics.all()) result += to_text(d) + '\n';
  if (diagnostics.has_errors()) return result;
  for (const Node& item : root.items()) result += item.scalar() + ' ';
  return result;
}

}  // namespace

TEST_CASE("a repeat stands for copies with running numbers") {
  CHECK(expanded("- a{i}\n- repeat: 2\n  items: ['x{i}', y, '{i}{i}']\n- z\n") ==
        "a{i} x1 y 11 x2 y 22 z ");
}

TEST_CASE("repeats nest, the innermost number is i") {
  CHECK(expanded("- repeat: 2\n  items:\n  - '{i}'\n  - repeat: 2\n    items: ['{j}.{i}{k}']\n") ==
        "1 1.1{k} 1.2{k} 2 2.1{k} 2.2{k} ");
}

TEST_CASE("repeats are found below mappings, and texts in mappings are numbered") {
  Diagnostics diagnostics;
  Node root = parse_document(
      "chain:\n- repeat: 3\n  items:\n  - {name: 's{i}', parts: ['p{i}'], '{i}': x}\n", "f");
  expand_repeats(root, {}, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  const Node& chain = *root.find("chain");
  REQUIRE(chain.items().size() == 3);
  CHECK(chain.items()[2].find("name")->scalar() == "s3");
  CHECK(chain.items()[2].find("parts")->items()[0].scalar() == "p3");
  CHECK(chain.items()[2].find("{i}") != nullptr);  // keys stay
  CHECK(chain.items()[2].where().line == 4);
}

TEST_CASE("all errors of repeats are reported") {
  CHECK(expanded("- repeat: 0\n  items: [a]\n- repeat: 2\n- repeat: x\n  itms: [a]\n"
                 "- repeat: 2\n  items: a\n") ==
        "f:1:11: error: found `0`, expected how often to repeat: a whole number from 1\n"
        "f:3:3: error: a repeat without `items`, expected a list of them\n"
        "f:4:11: error: found `x`, expected how often to repeat: a whole number from 1\n"
        "f:5:3: error: unknown key `itms`, a repeat has only `repeat` and `items`; did you mean "
        "`items`?\n"
        "f:4:3: error: a repeat without `items`, expected a list of them\n"
        "f:7:10: error: found `a`, expected the list of items to repeat\n");
}

TEST_CASE("repeats without end are refused by their count") {
  const DocumentLimits few{.nodes = 1'000};
  for (const char* items : {"[a]", "[]"})
    CHECK(expanded(std::string("- repeat: 9000000000000000000\n  items: ") + items, few)
              .find("repeats make more than 1000 values") != std::string::npos);
}

TEST_CASE("repeats that are too many are refused where they are, before their items are made") {
  CHECK(expanded("- repeat: 501\n  items: [a]\n", {.nodes = 1'000})
            .starts_with("f:1:3: error: repeats make more than 1000 values"));
  CHECK(expanded("- repeat: 200\n  items: [{a: [b, c]}]\n", {.nodes = 1'000})
            .starts_with("f:1:3: error: repeats make more than 1000 values"));
}

TEST_CASE("a hundred thousand stages take three lines") {
  Diagnostics diagnostics;
  Node root = parse_document(
      "- repeat: 100000\n  items:\n  - {name: 's{i}', forward: 1 ms, backward: 2 ms, saved: 1 B}\n",
      "f");
  expand_repeats(root, {}, diagnostics);
  REQUIRE(root.items().size() == 100'000);
  CHECK(root.items().back().find("name")->scalar() == "s100000");
}
