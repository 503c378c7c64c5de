#include "base/format.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;

namespace {

enum class Sharing { fifo, fair };

struct Link {
  std::vector<std::string> between;
  ByteRate bandwidth;
  Time latency{7};
  std::optional<Sharing> sharing;
  bool slow = false;
  std::int64_t lanes = 1;
  std::optional<Ratio> share;
  Location where;
};

Format<Link> link_format() {
  return Record<Link>("link", "Joins two memories.")
      .required("between", &Link::between, list_of(name(), 2, 2), "the two memories")
      .required("bandwidth", &Link::bandwidth, quantity<ByteRate>(Unlimited::allowed), "per way")
      .optional("latency", &Link::latency, quantity<Time>(), "default 7 ps")
      .optional("sharing", &Link::sharing,
                one_of<Sharing>({{"fifo", Sharing::fifo}, {"fair", Sharing::fair}}), "the rule")
      .optional("slow", &Link::slow, boolean(), "")
      .optional("lanes", &Link::lanes, integer(1, 16), "")
      .optional("share", &Link::share, efficiency(), "")
      .where(&Link::where)
      .format();
}

template <class T>
std::string errors_of(const Format<T>& format, const std::string& text) {
  Diagnostics diagnostics;
  const std::optional<T> value = format.read(parse_document(text, "f"), diagnostics);
  CHECK(value.has_value() != diagnostics.has_errors());
  std::string all;
  for (const Diagnostic& d : diagnostics.all()) all += to_text(d) + '\n';
  return all;
}

template <class T>
T read_or_fail(const Format<T>& format, const std::string& text) {
  Diagnostics diagnostics;
  std::optional<T> value = format.read(parse_document(text, "f"), diagnostics);
  for (const Diagnostic& d : diagnostics.all()) UNSCOPED_INFO(to_text(d));
  REQUIRE(value.has_value());
  return *value;
}

}  // namespace

TEST_CASE("a record is read, what is left out keeps its default") {
  const Link link = read_or_fail(
      link_format(), "\n{between: [a, b], bandwidth: unlimited, sharing: fair, share: 82 %}");
  CHECK(link.between == std::vector<std::string>{"a", "b"});
  CHECK(link.bandwidth.is_unlimited());
  CHECK(link.latency == Time(7));
  CHECK(link.sharing == Sharing::fair);
  CHECK(link.share == Ratio(820'000'000));
  CHECK(link.where.line == 2);
}

TEST_CASE("all errors of a record are reported") {
  CHECK(
      errors_of(link_format(),
                "bandwith: 1 GB/s\nlatency: 5\nsharing: fiar\nslow: yes\nlanes: 17\nshare: 0\n") ==
      "f:1:1: error: unknown key `bandwith` in the link; did you mean `bandwidth`?\n"
      "f:2:10: error: `5` has no unit, expected a time such as `5 us`\n"
      "f:3:10: error: found `fiar`, expected one of `fifo`, `fair`; did you mean `fair`?\n"
      "f:4:7: error: found `yes`, expected `true` or `false`\n"
      "f:5:8: error: found `17`, expected a whole number from 1 to 16\n"
      "f:6:8: error: found `0`, expected a share above 0 and at most 1, such as `0.82` or `82 %`\n"
      "f:1:1: error: the link has no `between`\n"
      "f:1:1: error: the link has no `bandwidth`\n");
}

TEST_CASE("the wrong kind is an error that says what was expected") {
  CHECK(errors_of(link_format(), "[a]") ==
        "f:1:1: error: found a list, expected a mapping with `between`, `bandwidth`, `latency`, "
        "`sharing`, `slow`, `lanes` and `share`\n");
  CHECK(errors_of(link_format(), "{between: x, bandwidth: [1]}") ==
        "f:1:11: error: found `x`, expected a list\n"
        "f:1:25: error: found a list, expected a quantity such as `12.3 GB/s`\n");
  CHECK(errors_of(list_of(name(), 2, 2), "[a]") ==
        "f:1:1: error: the list has 1 item, expected at least 2\n");
  CHECK(errors_of(integer(0, 9), "'5'") ==
        "f:1:1: error: found `5`, expected a whole number from 0 to 9\n");
  CHECK(errors_of(integer(0, 9), "5.0") ==
        "f:1:1: error: found `5.0`, expected a whole number from 0 to 9\n");
  CHECK(errors_of(name(), "a b") ==
        "f:1:1: error: found `a b`, expected a name (letters, digits, `_ - . /`)\n");
  CHECK(errors_of(efficiency(), "1.01").find("at most 1") != std::string::npos);
  CHECK(errors_of(text(), "~") == "f:1:1: error: found nothing, expected a text\n");
}

TEST_CASE("shares may be numbers or percentages") {
  CHECK(read_or_fail(efficiency(), "1") == kWhole);
  CHECK(read_or_fail(fraction(), "150 %") == Ratio(1'500'000'000));
  CHECK(read_or_fail(fraction(), "0") == Ratio(0));
  CHECK(read_or_fail(fraction(), "1") == kWhole);
  // 10 may mean 10 % or ten times as much.
  CHECK(errors_of(fraction(), "10") ==
        "f:1:1: error: found `10`, expected a share such as `0.5` or `50 %`, above 1 with `%`; did "
        "you mean `10 %`?\n");
}

TEST_CASE("compounds combine") {
  const auto sizes = map_of(located(quantity<Bytes>()));
  const auto entries = read_or_fail(sizes, "b: 1 B\na: 2 B\n");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].first.value == "b");  // the order of the file
  CHECK(entries[1].second.value == Bytes(2));
  CHECK(entries[1].second.where.column == 4);
  CHECK(errors_of(sizes, "'a b': 1 B\nc: 1\n") ==
        "f:1:1: error: found `a b`, expected a name (letters, digits, `_ - . /`)\n"
        "f:2:4: error: `1` has no unit, expected a size such as `16 GiB`\n");

  const Format<std::vector<std::string>> one_or_many =
      either(mapped<std::string, std::vector<std::string>>(
                 name(), [](std::string one) { return std::vector{std::move(one)}; }),
             list_of(name()));
  CHECK(read_or_fail(one_or_many, "x") == std::vector<std::string>{"x"});
  CHECK(read_or_fail(one_or_many, "[x, y]").size() == 2);
  CHECK(errors_of(one_or_many, "{a: b}") ==
        "f:1:1: error: found a mapping, expected a name (letters, digits, `_ - . /`) or a list\n");
  CHECK(read_or_fail(raw(), "{a: b}").is_mapping());
}

TEST_CASE("twenty thousand unknown keys are counted, not all described") {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text.append("k").append(std::to_string(i)).append(": 1, ");
  Diagnostics diagnostics;
  CHECK_FALSE(link_format().read(parse_document(text + "}", "f"), diagnostics).has_value());
  CHECK(diagnostics.all().size() == Diagnostics::kMaxErrors);
}

TEST_CASE("the JSON Schema is made from the same description") {
  const std::string text = json_schema(link_format().shape, "Link file");
  CHECK(text == json_schema(link_format().shape, "Link file"));
  const auto schema = nlohmann::json::parse(text);
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["title"] == "Link file");
  CHECK(schema["type"] == "object");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["required"] == nlohmann::json({"between", "bandwidth"}));
  const auto& properties = schema["properties"];
  CHECK(properties["between"]["minItems"] == 2);
  CHECK(properties["between"]["description"] == "the two memories");
  CHECK(properties["sharing"]["enum"] == nlohmann::json({"fifo", "fair"}));
  CHECK(properties["lanes"]["maximum"] == 16);
  CHECK(properties["slow"]["type"] == "boolean");
  CHECK(properties["share"]["anyOf"].size() == 2);
  CHECK(properties["bandwidth"]["pattern"].get<std::string>().find("unlimited") !=
        std::string::npos);
}

namespace {

struct Range {
  std::int64_t low = 0, high = 0, other = 0;
};

Format<Range> range_format() {
  return Record<Range>("range", "From low to high.")
      .required("low", &Range::low, integer(0, 9), "")
      .optional("high", &Range::high, integer(0, 9), "default 0")
      .optional("other", &Range::other, integer(0, 9), "")
      .check({"low", "high"},
             [](Range& range, const Node& node, Diagnostics& diagnostics) {
               if (range.low > range.high) diagnostics.error(node.where(), "low is above high");
             })
      .format();
}

std::string range_errors(const std::string& text) {
  Diagnostics diagnostics;
  (void)range_format().read(parse_document(text, "f"), diagnostics);
  std::string all;
  for (const Diagnostic& d : diagnostics.all()) all += (all.empty() ? "" : "\n") + to_text(d);
  return all;
}

}  // namespace

TEST_CASE("a check runs whenever its own fields can be trusted") {
  const std::string problem = "f:1:1: error: low is above high";
  CHECK(range_errors("{low: 2, high: 1}") == problem);
  CHECK(range_errors("{low: 2}") == problem);
  CHECK(range_errors("{low: 2, high: 3}").empty());
  // Another field does not matter.
  CHECK(range_errors("{low: 2, high: 1, other: x}").find(problem) != std::string::npos);
  // One of its own does: unreadable, missing, or maybe misspelt.
  for (const char* text : {"{low: 2, high: x}", "{high: 1}", "{low: 2, hihg: 3}"})
    CHECK(range_errors(text).find("above") == std::string::npos);
}
