// What an expression is, in postfix; and what is none.
#include "base/expression_parser.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::string postfix(std::string_view text, Grammar grammar = Grammar::quantities) {
  std::string all;
  for (const ExpressionToken& token : parse_expression(text, grammar))
    all += (all.empty() ? "" : " ") + ('[' + token.text + ']');
  return all;
}

std::string error_of(std::string_view text, Grammar grammar = Grammar::quantities) {
  try {
    return "none: " + postfix(text, grammar);
  } catch (const ExpressionError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("expressions: operations come after their operands, products before sums") {
  CHECK(postfix("a + b * c") == "[a] [b] [c] [*] [+]");
  CHECK(postfix("(a + b) * c") == "[a] [b] [+] [c] [*]");
  CHECK(postfix("a - b - c") == "[a] [b] [-] [c] [-]");
  CHECK(postfix("a < b and b != c or not c >= d") ==
        "[a] [b] [<] [b] [c] [!=] [and] [c] [d] [>=] [not] [or]");
}

TEST_CASE("expressions: quantities, paths and texts") {
  CHECK(postfix("links.pcie-0.bandwidth / 2") == "[links.pcie-0.bandwidth] [2] [/]");
  CHECK(postfix("a - b") == "[a] [b] [-]");
  CHECK(postfix("a-b") == "[a-b]");
  CHECK(postfix("25 GB/s + 1.5GB/s") == "[25 GB/s] [1.5 GB/s] [+]");
  CHECK(postfix("10 % * a") == "[10 %] [a] [*]");
  CHECK(postfix("16 GiB / b") == "[16 GiB] [b] [/]");
  CHECK(postfix("a == 1 and b == 2") == "[a] [1] [==] [b] [2] [==] [and]");
  CHECK(postfix("policy == 'offload/greedy'") == "[policy] ['offload/greedy] [==]");
  CHECK(postfix("order == 1") == "[order] [1] [==]");
}

TEST_CASE("expressions: whole numbers have sums only") {
  CHECK(postfix("4 * width", Grammar::whole_numbers) == "[4] [width] [*]");
  CHECK(error_of("a < b", Grammar::whole_numbers) ==
        "`a < b` is not a whole number or an expression: unexpected `<`");
  CHECK(error_of("1.5", Grammar::whole_numbers) ==
        "`1.5` is not a whole number or an expression: unexpected `.`");
}

TEST_CASE("expressions: what is none says where it goes wrong") {
  CHECK(error_of("") == "`` is not an expression: it ends too early");
  CHECK(error_of("a +") == "`a +` is not an expression: it ends too early");
  CHECK(error_of("(a") == "`(a` is not an expression: it ends too early");
  CHECK(error_of("a b") == "`a b` is not an expression: unexpected `b`");
  CHECK(error_of("a < b < c") == "`a < b < c` is not an expression: unexpected `<`");
  CHECK(error_of("and") == "`and` is not an expression: unexpected `a`");
  CHECK(error_of("a == 'b") == "`a == 'b` is not an expression: it ends too early");
}

}  // namespace plimsoll
