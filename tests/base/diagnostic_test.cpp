#include "base/diagnostic.hpp"

#include "base/names_hint.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("a diagnostic reads file:line:column: severity: message; hint") {
  CHECK(to_text(Diagnostic{Severity::error, {"a.yaml", 3, 5}, "unknown key `x`", "did you?"}) ==
        "a.yaml:3:5: error: unknown key `x`; did you?");
  CHECK(to_text(Diagnostic{Severity::warning, {"--set #2", 0, 0}, "odd", ""}) ==
        "--set #2: warning: odd");
}

TEST_CASE("a message is one line of visible text, whatever the input holds") {
  CHECK(to_text(
            Diagnostic{Severity::error, {"a\x1b[2J.yaml", 3, 5}, "found `x\ny\x07`", "`\xFF`?"}) ==
        "a\\x1B[2J.yaml:3:5: error: found `x\\x0Ay\\x07`; `\\xFF`?");
  // C1, and an override of the direction.
  CHECK(to_text(Diagnostic{Severity::note, {}, "\xC2\x9B \xE2\x80\xAE \xC3\xA9", ""}) ==
        "note: \\xC2\\x9B \\xE2\\x80\\xAE \xC3\xA9");
}

TEST_CASE("a name that is not there is answered with the nearest, or with those there are") {
  const std::vector<std::string> none, one{"hbm"}, two{"sram", "flash"};
  CHECK(hint_of_names("hmb", one) == "did you mean `hbm`?");
  CHECK(hint_of_names("dram0", one) == "there is only `hbm`");
  CHECK(hint_of_names("hbm", two) == "there are `sram` and `flash`");
  CHECK(hint_of_names("hbm", none) == "there are none");
  const std::vector<std::string> many(15, "sram");
  CHECK(hint_of_names("x", many).ends_with("`sram`, `sram` and 3 more"));
}

TEST_CASE("errors are thrown at once, in the order of the text") {
  Diagnostics diagnostics;
  diagnostics.warning({"a", 1, 1}, "w");
  CHECK_NOTHROW(diagnostics.throw_if_errors());
  diagnostics.error({"a", 7, 1}, "late");
  diagnostics.error({"a", 2, 9}, "early");
  diagnostics.error({"b", 1, 1}, "other");
  CHECK(diagnostics.warnings().size() == 1);
  try {
    diagnostics.throw_if_errors();
    FAIL("nothing thrown");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()) ==
          "a:1:1: warning: w\na:2:9: error: early\na:7:1: error: late\nb:1:1: error: other");
  }
}

TEST_CASE("what an error says is not said again as a warning") {
  Diagnostics diagnostics;
  diagnostics.warning({"a", 1, 1}, "wrong", "hint");
  diagnostics.warning({"a", 2, 1}, "wrong", "hint");
  diagnostics.error({"a", 1, 1}, "wrong", "hint");
  CHECK_THROWS_WITH(diagnostics.throw_if_errors(),
                    "a:1:1: error: wrong; hint\na:2:1: warning: wrong; hint");
}

TEST_CASE("beyond the cap errors are only counted") {
  Diagnostics diagnostics;
  const int extra = 5;
  for (int i = 0; i < static_cast<int>(Diagnostics::kMaxErrors) + extra; ++i)
    diagnostics.error({"a", i + 1, 1}, "e");
  CHECK(diagnostics.is_full());
  CHECK(diagnostics.all().size() == Diagnostics::kMaxErrors);
  try {
    diagnostics.throw_if_errors();
    FAIL("nothing thrown");
  } catch (const InputError& e) {
    CHECK(e.diagnostics().back().message == "and 5 further errors, 105 in all");
    CHECK(e.diagnostics().back().severity == Severity::note);
  }
}

TEST_CASE("the same error at the same place is one") {
  Diagnostics diagnostics;
  for (int i = 0; i < 300; ++i) diagnostics.error({"a", 3, 7}, "e");
  diagnostics.error({"a", 3, 8}, "e");
  CHECK(diagnostics.all().size() == 2);
  CHECK_FALSE(diagnostics.is_full());
}

TEST_CASE("the nearest name is within a third of the length") {
  const std::vector<std::string> keys = {"bandwidth", "latency", "between", "duplex"};
  CHECK(nearest("bandwith", keys) == "bandwidth");
  CHECK(nearest("latnecy", keys) == "latency");      // two neighbours exchanged
  CHECK(nearest("Bandwidth", keys) == "bandwidth");  // case does not count
  CHECK(nearest("dupe", keys) == "duplex");          // 2 edits, 6 / 3 allowed
  CHECK(nearest("dup", keys).empty());               // 3 edits
  CHECK(nearest("", keys).empty());
  CHECK(nearest(std::string(100'000, 'b'), keys).empty());
  CHECK(did_you_mean("bandwith", keys) == "did you mean `bandwidth`?");
  CHECK(did_you_mean("power", keys).empty());
  // A name behind a slash, where nothing else is near and no slash was written.
  const std::vector<std::string> policies = {"offload/exact", "remat/exact", "remat/rotor"};
  CHECK(nearest("rotor", policies) == "remat/rotor");
  CHECK(nearest("rotr", policies) == "remat/rotor");
  CHECK(nearest("exact", policies) == "offload/exact");
  CHECK(nearest("remat/rotr", policies) == "remat/rotor");
  CHECK(nearest("rotor/x", policies).empty());
  CHECK(nearest("rotor", std::vector<std::string>{"a/rotor", "roter"}) == "roter");
  // Ties go to the first.
  CHECK(nearest("abx", std::vector<std::string>{"abc", "abd"}) == "abc");
}
