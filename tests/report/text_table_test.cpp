#include "report/text_table.hpp"

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

TEST_CASE("a table that is too wide loses what is dispensable first") {
  const std::string wide(60, 'x');
  TextTable table({{"name"}, {"detail", Column::Align::left, 1}, {"note", Column::Align::left, 2}});
  table.add({{"a"}, {wide}, {wide}});
  // 4 + 2 + 60 fit into 100 columns, 4 + 2 + 60 + 2 + 60 do not.
  CHECK(table.text(Style{}, 0) == "name  detail\n────  " + [] {
    std::string rule;
    for (int i = 0; i < 60; ++i) rule += "─";
    return rule;
  }() + "\na     " + wide + "\n");
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
