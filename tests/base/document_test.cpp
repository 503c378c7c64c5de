#include "base/document.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// All messages of a text that must be refused.
std::string refusal(const std::string& text, const DocumentLimits& limits = {}) {
  try {
    static_cast<void>(parse_document(text, "f", limits));
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

Node parsed(const std::string& text) {
  return parse_document(text, "f");
}

std::string refusal_of_file(const std::filesystem::path& path) {
  try {
    static_cast<void>(read_document(path));
  } catch (const InputError& e) {
    return std::string(e.what()).substr(path.string().size());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a tree knows its kinds, texts and places") {
  const Node root = parsed("a: 1\nb: [x, 'y']\nc:\n  d: ~\n");
  REQUIRE(root.is_mapping());
  REQUIRE(root.entries().size() == 3);
  CHECK(root.find("a")->scalar() == "1");
  const Node& list = *root.find("b");
  REQUIRE(list.items().size() == 2);
  CHECK_FALSE(list.items()[0].is_quoted());
  CHECK(list.items()[1].is_quoted());
  CHECK(list.items()[1].where().line == 2);
  CHECK(list.items()[1].where().column == 8);
  CHECK(root.find("c")->find("d")->is_null());
  CHECK(root.find("e") == nullptr);
  CHECK(root.describe() == "a mapping");
  CHECK(list.describe() == "a list");
  CHECK(list.items()[0].describe() == "`x`");
  CHECK(root.find("c")->find("d")->describe() == "nothing");
}

TEST_CASE("an empty text is a null node") {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "\xEF\xBB\xBF"})
    CHECK(parsed(text).is_null());
}

TEST_CASE("lines that say nothing are read by the million, not by tens of millions") {
  const std::string empty = "\n  \n# nothing\n";
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += empty;
  CHECK(parsed(text + "a: 1\n").find("a")->where().line == 900'001);
  for (int i = 0; i < 100'000; ++i) text += empty;
  CHECK(refusal(text + "a: 1\n") ==
        "f:1000001:1: error: more than 1000000 blank lines and lines of comment");
}

TEST_CASE("byte order mark and Windows line ends are fine") {
  const Node root = parsed(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n");
  CHECK(root.find("a")->scalar() == "1");
  CHECK(root.find("b")->scalar() == "2");
  CHECK(root.find("b")->where().line == 2);
}

TEST_CASE("aliases are expanded and carry their own place") {
  const Node root = parsed("a: &x {p: [1]}\nb: *x\n");
  const Node& copy = *root.find("b");
  CHECK(copy.find("p")->items()[0].scalar() == "1");
  CHECK(copy.find("p")->items()[0].where().line == 2);
  CHECK(root.find("a")->find("p")->where().line == 1);
}

TEST_CASE("what YAML allows and we do not is refused, with its place") {
  CHECK(refusal("a: 1\nb: 2\na: 3\n") == "f:3:1: error: repeated key `a`, first given in line 1");
  CHECK(refusal("a: !t 1") == "f:1:4: error: a tag (`!t`), expected a value without one");
  CHECK(refusal("a: ! 1") == "f:1:4: error: a tag (`!`), expected a value without one");
  CHECK(refusal("a: 1\n---\nb: 1\n") ==
        "f:2:1: error: a second document or text after the end of the first, expected one");
  CHECK(refusal("[a]\nb\n") ==
        "f:2:1: error: a second document or text after the end of the first, expected one");
  CHECK(refusal("? [a]\n: b\n") ==
        "f:1:3: error: a list or mapping as a key, or a bracket that is not closed");
  CHECK(refusal("a: 1\nb\n") == "f:2:1: error: `b` has no `:`, expected `key: value`");
  CHECK(parsed("a:\nb:").find("b")->is_null());
  // What is not there is where its key is; what is written is where it is.
  CHECK(parsed("\na:\n\nb: 1\n").find("a")->where().line == 2);
  CHECK(parsed("x:\n  a:\n\nb: 1\n").find("x")->find("a")->where().column == 3);
  CHECK(parsed("a: ~\n").find("a")->where().column == 4);
  CHECK(refusal("a:\n\tb: 1\n") == "f:2:3: error: a tab in the indentation, expected spaces");
  CHECK(refusal("~: b\n") == "f:1:1: error: found nothing, expected a key");
  CHECK(refusal("a: &x [1, *x]\n") ==
        "f:1:11: error: an alias that refers to a value which contains it");
  CHECK(refusal("a: *x\n") ==
        "f:1:4: error: an alias (`*name`) whose anchor (`&name`) is not defined before it");
  // A merge key is a key like any other: loaders do not know it.
  CHECK(parsed("<<: {a: 1}\n").find("a") == nullptr);
}

TEST_CASE("a quoted text that does not end is refused where it begins") {
  const std::string unclosed = ": error: the file ends inside a quoted text";
  CHECK(refusal("a: \"b\n") == "f:1:4" + unclosed);
  CHECK(refusal("a: 'b\n\n") == "f:1:4" + unclosed);
  CHECK(refusal("a: 'it''s\n") == "f:1:4" + unclosed);
  CHECK(refusal("a: \"b\\\"\n") == "f:1:4" + unclosed);
  CHECK(refusal("a: &x # c\n  \"b\n") == "f:1:4" + unclosed);
  CHECK(refusal("a: [1, \"b\n") == "f:1:8" + unclosed);
  CHECK(parse_document("a: &x # c\n  \"b\"\n", "f").find("a")->scalar() == "b");
  CHECK(parse_document("a: 'it''s'\nb: \"c\\\"\"\n", "f").find("a")->scalar() == "it's");
  CHECK(parse_document("\"a\": ''\n", "f").find("a")->scalar().empty());
}

TEST_CASE("an error points at the value that came from elsewhere") {
  Node root = parse_document("a: 1\nb: {c: [1, 2]}\nd: 3\n", "f");
  const std::vector<std::string> keys{"a", "b", "missing"};
  CHECK(place_of(root, keys).line == 1);
  Diagnostics diagnostics;
  root.set("d", parse_value("4", "--set #1"), diagnostics);
  CHECK(place_of(root, keys).origin == "f");
  root.set("b.c.1", parse_value("4", "--set #2"), diagnostics);
  CHECK(place_of(root, keys).origin == "--set #2");
  root.set("a", parse_value("4", "--set #3"), diagnostics);
  CHECK(place_of(root, keys).origin == "--set #3");
}

TEST_CASE("bytes that are no text are refused, with their place") {
  using namespace std::string_literals;
  CHECK(refusal("a: \xFF\n") == "f:1:4: error: the byte 0xFF is not valid UTF-8");
  CHECK(refusal("a: 1\nb: \xC0\xAF\n") == "f:2:4: error: the byte 0xC0 is not valid UTF-8");
  CHECK(refusal("a\0b"s) == "f:1:2: error: the control character 0x00 has no place in a text");
  CHECK(refusal("a: \x1b[0m") == "f:1:4: error: the control character 0x1B has no place in a text");
  CHECK(refusal("a: 1\rb: 2") == "f:1:5: error: the control character 0x0D has no place in a text");
  // Cut short, surrogate, above U+10FFFF, overlong.
  for (const char* text : {"\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\xAF"})
    CHECK(refusal(text).find("is not valid UTF-8") != std::string::npos);
  CHECK(parsed("\xE2\x82\xAC").scalar() == "\xE2\x82\xAC");
}

TEST_CASE("control characters of two bytes are refused, those behind an escape are text") {
  CHECK(refusal("a: \xC2\x9B\n") ==
        "f:1:4: error: the control character 0x9B has no place in a text");
  CHECK(parsed("\"two\\nlines \\x01\"").scalar() == "two\nlines \x01");
}

TEST_CASE("the markers of a merge are told for what they are") {
  const std::string marker =
      "error: a conflict marker of a merge: the file holds two versions of some lines; keep one of "
      "them, and remove the lines of the markers";
  CHECK(refusal("a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> theirs\n") == "f:2:1: " + marker);
  CHECK(refusal("a: 1\n>>>>>>> theirs\n") == "f:2:1: " + marker);
  CHECK(parsed("a: <<<<<<< b\n").find("a")->scalar() == "<<<<<<< b");
}

TEST_CASE("a blank that looks like a space is told by its name") {
  const std::string wrong = "error: a non-breaking space (U+00A0), expected an ordinary space";
  CHECK(refusal("a:\n\xC2\xA0 b: 1\n") == "f:2:1: " + wrong);
  CHECK(refusal("a:\n  -\xC2\xA0"
                "1\n") == "f:2:4: " + wrong);
  CHECK(refusal("a:\xC2\xA0"
                "1\n") == "f:1:3: " + wrong);
  CHECK(parsed("a: 1\xC2\xA0h\n").find("a")->scalar() == "1\xC2\xA0h");
}

TEST_CASE("what is indented too deep is not said to have a second colon") {
  CHECK(refusal("a: 1\n  b: 2\n") ==
        "f:2:3: error: this line is indented deeper than the `key: value` above it, which is "
        "complete; expected the same indentation");
  CHECK(refusal("a: b: c\n") ==
        "f:1:5: error: a second `:` in the line; a text that contains `: ` needs quotes");
}

TEST_CASE("a file without a value has a place") {
  CHECK(parsed("").where() == Location{"f", 1, 1});
  CHECK(parsed("# nothing\n").where() == Location{"f", 1, 1});
}

TEST_CASE("all repeated keys are reported") {
  CHECK(refusal("a: 1\na: 2\nb: {c: 1, c: 2}\n") ==
        "f:2:1: error: repeated key `a`, first given in line 1\n"
        "f:3:11: error: repeated key `c`, first given in line 3");
}

TEST_CASE("the caps hold") {
  const DocumentLimits few{.nodes = 3};
  CHECK(parse_document("[a, b]", "f", few).items().size() == 2);  // the list and two items
  CHECK(refusal("[a, b, c]", few).find("more than 3 values") != std::string::npos);
  const DocumentLimits flat{.depth = 2};
  CHECK(parse_document("[[a]]", "f", flat).items().size() == 1);
  CHECK(refusal("[[[a]]]", flat).find("nested deeper than 2 levels") != std::string::npos);
  // Two levels at the anchor and one above make three at the alias.
  CHECK(refusal("a: &x [b]\nc: [*x]\n", flat).find("f:2:5: error: nested deeper than 2") == 0);
  CHECK(refusal("abcdef", {.bytes = 5}) == "f: error: larger than 5 bytes");
}

TEST_CASE("anchors that expand without end are refused by their count") {
  // Each line doubles what the one before stands for.
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string now = std::to_string(i);
    const std::string before = std::to_string(i - 1);
    for (const char* part : {"a", ": &a"}) text.append(part).append(now);
    for (const char* part : {" [*a", ", *a"}) text.append(part).append(before);
    text.append("]\n");
  }
  CHECK(refusal(text, {.nodes = 100'000}).find("more than 100000 values") != std::string::npos);
  // A long text many times: few values, many bytes.
  std::string copies = "a: &a \"" + std::string(100'000, 'x') + "\"\nb:\n";
  for (int i = 0; i < 1'000; ++i) copies += " - *a\n";
  CHECK(refusal(copies).find("bytes of text") != std::string::npos);
}

TEST_CASE("brackets that yaml-cpp would keep in memory as a whole are refused early") {
  std::string text = "- a\n- [";
  for (int i = 0; i < 2'100'000; ++i) text += "x,";
  CHECK(refusal(text + "]").find("f:1:3: error: a list or mapping in brackets") == 0);
  // In lines of their own they are fine: 13 to a line, 2.2 million.
  std::string lines;
  for (int i = 0; i < 170'000; ++i) lines += "- {a: '-------'}\n";
  CHECK(parsed(lines).items().size() == 170'000);
}

TEST_CASE("nesting without end is refused at once") {
  for (const char* unit : {"[", "{", "{a: ", "[a, ", "- ", "? ", "&a [", "? - "}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    CHECK(refusal(text) != "accepted");
  }
}

TEST_CASE("a mapping of 100000 keys is not compared pair by pair") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text.append("k").append(std::to_string(i)).append(": 1\n");
  text += "k5: 1\n";
  CHECK(refusal(text) == "f:100001:1: error: repeated key `k5`, first given in line 6");
}

TEST_CASE("files are looked at before they are read") {
  const test::TemporaryFolder folder;
  CHECK(refusal_of_file(folder / "none.yaml") == ": error: there is no such file");
  CHECK(refusal_of_file(folder / ".") == ": error: is a directory, expected a file");
  const auto large = folder / "large.yaml";
  std::ofstream(large).close();
  std::filesystem::resize_file(large, 100'000'000);
  CHECK(refusal_of_file(large) ==
        ": error: has 100000000 bytes; files of more than 33554432 bytes are not read");
  const auto fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal_of_file(fifo) == ": error: is not a regular file");
  const auto good = folder / "good.yaml";
  std::ofstream(good) << "a: 1\n";
  const Node root = read_document(good);
  CHECK(root.find("a")->where().origin == good.string());
}

TEST_CASE("values from the command line carry their own origin and are set by path") {
  Diagnostics diagnostics;
  Node root = parsed("links:\n  pcie: {bandwidth: 12 GB/s}\nchain: [{saved: 1 B}]\nempty:\n");
  root.set("links.pcie.bandwidth", parse_value("25 GB/s", "--set #1"), diagnostics);
  root.set("chain.0.saved", parse_value("2 B", "--set #2"), diagnostics);
  root.set("run.iterations", parse_value("3", "--set #3"), diagnostics);
  root.set("empty.now", parse_value("{x: 1 B}", "--set #4"), diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  const Node& bandwidth = *root.find("links")->find("pcie")->find("bandwidth");
  CHECK(bandwidth.scalar() == "25 GB/s");
  CHECK(to_text(Diagnostic{Severity::error, bandwidth.where(), "m", ""}) == "--set #1: error: m");
  CHECK(root.find("chain")->items()[0].find("saved")->scalar() == "2 B");
  CHECK(root.find("run")->find("iterations")->scalar() == "3");
  CHECK(root.find("empty")->find("now")->find("x")->scalar() == "1 B");
}

TEST_CASE("paths that lead nowhere are errors") {
  Node root = parsed("a: 1\nl: [x]\n");
  const auto set = [&](const std::string& path) {
    Diagnostics diagnostics;
    root.set(path, parse_value("1", "--set #1"), diagnostics);
    return diagnostics.all().empty() ? "fine" : to_text(diagnostics.all()[0]);
  };
  CHECK(set("a.b") ==
        "--set #1: error: cannot set `a.b`: there is nothing below `1` that `b` names");
  CHECK(
      set("l.1") ==
      "--set #1: error: cannot set `l.1`: the list has 1 items, counted from 0; `1` is not one of "
      "them");
  CHECK(set("l.x") == "--set #1: error: cannot set `l.x`: `x` is not the index of a list item");
  CHECK(set("") == "--set #1: error: cannot set ``: the path has an empty part");
  CHECK(set("a..b") != "fine");
}

TEST_CASE("a value that is not YAML names its origin") {
  try {
    static_cast<void>(parse_value("[a", "--set #1"));
    FAIL("accepted");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("--set #1: error: ") == 0);
  }
}

TEST_CASE("random bytes never crash the parser", "[property]") {
  std::mt19937_64 random(3);
  const std::string alphabet = "ab01:-?[]{},&*!|>'\"%@`#\n\n   \t~.\\<=";
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    const bool any_byte = i % 10 == 0;
    for (std::size_t length = random() % 60; length > 0; --length)
      text += any_byte ? static_cast<char>(random() & 0xFF) : alphabet[random() % alphabet.size()];
    try {
      static_cast<void>(parse_document(text, "f"));
    } catch (const InputError& e) {
      CHECK_FALSE(e.diagnostics().empty());
    }
  }
}
