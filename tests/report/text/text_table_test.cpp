#include "report/text/text_table.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("columns are as wide as what they hold") {
  TextTable table({{"name"}, {"size", Column::Align::right}});
  table.add({{"a"}, {"1 B"}});
  table.add({{"longer"}, {"100 B"}});
  CHECK(table.text(Style{}) ==
        "  name     size\n"
        "  ──────  ─────\n"
        "  a         1 B\n"
        "  longer  100 B\n");
}

TEST_CASE("characters of several bytes count once, colour not at all") {
  TextTable table({{"bar"}, {"n", Column::Align::right}});
  table.add({{"██", Paint::good}, {"1"}});
  CHECK(table.text(Style{}, 0) == "bar  n\n───  ─\n██   1\n");
  CHECK(table.text(Style{true}, 0).find("\033[32m██\033[0m   1\n") != std::string::npos);
}

TEST_CASE("what does not fit stands below, beside the names of its rows") {
  const std::string wide(60, 'x'), number(40, '9');
  const auto rule = [](std::size_t width) {
    std::string text;
    for (std::size_t i = 0; i < width; ++i) text += "─";
    return text;
  };
  TextTable table({{"name"}, {"detail"}, {"count", Column::Align::right}, {"n"}});
  table.add({{"a"}, {wide}, {number}, {"1"}});
  // 4 + 2 + 60 fit into 100 columns, 4 + 2 + 60 + 2 + 40 do not; below 4 + 2 + 40 + 2 + 1 do.
  CHECK(table.text(Style{}, 0) == "name  detail\n────  " + rule(60) + "\na     " + wide +
                                      "\n\nname  " + std::string(35, ' ') + "count  n\n────  " +
                                      rule(40) + "  ─\na     " + number + "  1\n");
}

TEST_CASE("a row may have several names, and every block has them") {
  const std::string wide(60, 'x');
  TextTable table({{"a"}, {"b"}, {"c"}, {"d", Column::Align::right}}, 2);
  table.add({{"1"}, {"2"}, {wide}, {wide}});
  // 1 + 2 + 1 + 2 + 60 = 66; with another 2 + 60 it is 128.
  const std::string text = table.text(Style{}, 0);
  CHECK(text.starts_with("a  b  c\n"));
  CHECK(text.find("\n1  2  " + wide + "\n\na  b  ") != std::string::npos);
  CHECK(text.ends_with("\n1  2  " + wide + "\n"));
}

TEST_CASE("a block has a column beside the names, however wide they are") {
  const std::string wide(99, 'x');
  TextTable table({{"name"}, {"n", Column::Align::right}, {"m", Column::Align::right}});
  table.add({{wide}, {"1"}, {"2"}});
  const std::string text = table.text(Style{}, 0);
  CHECK(text.find(wide + "  1\n\n") != std::string::npos);
  CHECK(text.ends_with(wide + "  2\n"));
}

TEST_CASE("the last column is wrapped where it must stay") {
  TextTable table({{"a"}, {"text"}});
  std::string words;
  for (int i = 0; i < 30; ++i) words += "word ";
  words.pop_back();
  table.add({{"1"}, {words}});
  const std::string text = table.text(Style{}, 0);
  std::size_t longest = 0, begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    longest = std::max(longest, width_of(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  CHECK(longest <= kReportWidth);
  CHECK(text.find("\n   word") != std::string::npos);
}
