// When a memory grants what is asked of it: the order of requests, and those for nothing.
#include "policy/claims/grants.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

Moment at(std::int64_t time) {
  return {Time{time}, 0};
}

}  // namespace

TEST_CASE("a request is granted when its bytes are free and those before it are granted") {
  GrantLedger ledger(Bytes{10});
  ledger.place(Bytes{4});
  CHECK(ledger.grant(Bytes{6}, at(1)) == at(1));
  ledger.free_at(at(5), Bytes{6});
  CHECK(ledger.grant(Bytes{2}, at(2)) == at(5));
  // There is room for 4 B from 5 on; at 3 the request before was still waiting.
  CHECK(ledger.grant(Bytes{4}, at(3)) == at(5));
  CHECK(ledger.last_grant() == at(5));
  CHECK_FALSE(ledger.grant(Bytes{1}, at(6)));
}

TEST_CASE("who asks for nothing waits for nobody, and nobody for it") {
  GrantLedger ledger(Bytes{10});
  CHECK(ledger.grant(Bytes{10}, at(1)) == at(1));
  ledger.free_at(at(5), Bytes{10});
  CHECK(ledger.grant(Bytes{3}, at(2)) == at(5));
  CHECK(ledger.grant(Bytes{}, at(3)) == at(3));
  CHECK(ledger.grant(Bytes{}, at(9)) == at(9));
  CHECK(ledger.last_grant() == at(5));
  CHECK(ledger.grant(Bytes{3}, at(4)) == at(5));
}

}  // namespace plimsoll
