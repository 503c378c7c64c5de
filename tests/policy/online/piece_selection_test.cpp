// What goes to make room in a pool of pieces: known answers, and all windows of random pools.
#include "policy/online/piece_selection.hpp"

#include "policy/online/run/online_pool.hpp"
#include "policy/online/score.hpp"
#include "property/random_chains.hpp"
#include "support/oracles.hpp"
#include "support/sample.hpp"

#include <set>
#include <tuple>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Kind = ScoredPiece::Kind;
using test::json;

/// Costs are halves in the oracle.
std::vector<ScoredPiece> pieces_of(const json& instance) {
  std::vector<ScoredPiece> pieces;
  for (const json& it : instance.at("pieces")) {
    const auto& kind = it.at("kind");
    pieces.push_back({.bytes = it.at("size"),
                      .kind = kind == "free"    ? Kind::free
                              : kind == "fixed" ? Kind::fixed
                                                : Kind::evictable,
                      .cost = static_cast<std::uint64_t>(2 * it.at("cost").get<double>()),
                      .staleness = it.at("staleness")});
  }
  return pieces;
}

std::set<std::string> evicted_in(const json& instance, const std::vector<ScoredPiece>& pieces,
                                 const std::optional<PieceWindow>& window) {
  std::set<std::string> ids;
  for (std::size_t i = window->begin; i < window->end; ++i)
    if (pieces[i].kind == Kind::evictable) ids.insert(instance.at("pieces")[i].at("id"));
  return ids;
}

std::int64_t largest_hole(const std::vector<ScoredPiece>& pieces) {
  std::int64_t largest = 0, hole = 0;
  for (const ScoredPiece& piece : pieces) {
    hole = piece.kind == Kind::free ? hole + piece.bytes : 0;
    largest = std::max(largest, hole);
  }
  return largest;
}

/// In the order in which they go. Holes that touch count together, as in a pool.
json evicted_one_by_one(const json& instance, bool with_free) {
  json ids = json::array();
  std::vector<ScoredPiece> pieces = pieces_of(instance);
  std::vector<std::string> names;
  for (const json& it : instance.at("pieces")) names.push_back(it.at("id"));
  while (largest_hole(pieces) < instance.at("need")) {
    const auto piece = least_piece(pieces, with_free);
    ids.push_back(names[*piece]);
    pieces[*piece].kind = Kind::free;
    for (std::size_t i = 1; i < pieces.size();)
      if (pieces[i - 1].kind == Kind::free && pieces[i].kind == Kind::free) {
        pieces[i - 1].bytes += pieces[i].bytes;
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
        names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
  }
  return ids;
}

/// Sum of h, infinite ones apart; pieces; begin.
using WindowKey = std::tuple<std::int64_t, std::uint64_t, std::size_t, std::size_t>;

std::optional<WindowKey> key_of(const std::vector<ScoredPiece>& pieces, std::size_t begin,
                                std::size_t end, std::int64_t need) {
  std::int64_t bytes = 0, infinite = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (pieces[i].kind == Kind::fixed) return std::nullopt;
    bytes += pieces[i].bytes;
    if (pieces[i].kind == Kind::free) continue;
    if (pieces[i].staleness == 0)
      ++infinite;
    else
      sum += (pieces[i].cost << 32) / pieces[i].staleness;
  }
  if (bytes < need) return std::nullopt;
  return WindowKey{infinite, sum, end - begin, begin};
}

std::optional<WindowKey> least_of_all(const std::vector<ScoredPiece>& pieces, std::int64_t need) {
  std::optional<WindowKey> least;
  for (std::size_t begin = 0; begin < pieces.size(); ++begin)
    for (std::size_t end = begin + 1; end <= pieces.size(); ++end)
      if (const auto key = key_of(pieces, begin, end, need); key && (!least || *key < *least))
        least = key;
  return least;
}

std::vector<ScoredPiece> random_pieces(test::Dice& dice) {
  std::vector<ScoredPiece> pieces;
  for (std::int64_t i = 0, n = dice(1, 14); i < n; ++i)
    pieces.push_back({.bytes = dice(1, 9),
                      .kind = static_cast<Kind>(dice(0, 5) == 0 ? 1 : dice(0, 1) * 2),
                      .cost = static_cast<std::uint64_t>(dice(0, 6)),
                      .staleness = static_cast<std::uint64_t>(dice(0, 4))});
  return pieces;
}

}  // namespace

TEST_CASE("windows and single pieces go as in the known instances") {
  const json oracle = test::oracle("eviction_selection.json");
  for (const json& instance : oracle.at("instances")) {
    CAPTURE(instance.at("name").get<std::string>());
    const std::vector<ScoredPiece> pieces = pieces_of(instance);
    const std::int64_t need = instance.at("need");
    const auto evicted = [&](const char* rule) {
      return instance.at(rule).at("evicted").get<std::set<std::string>>();
    };
    const auto window = [&](WindowScan scan) {
      return evicted_in(instance, pieces, least_window(pieces, need, scan));
    };
    CHECK(window(WindowScan::corrected) == evicted("window_optimal"));
    CHECK(window(WindowScan::as_shipped) == evicted("window_as_shipped"));
    CHECK(evicted_one_by_one(instance, false) == instance.at("dtr_loop").at("evicted"));
    CHECK(evicted_one_by_one(instance, true) == instance.at("dte_loop").at("evicted"));
  }
}

TEST_CASE("the corrected window is the least of all runs of neighbours") {
  test::Dice dice(20270413);
  int found = 0;
  for (int round = 0; round < test::rounds(20'000); ++round) {
    const std::vector<ScoredPiece> pieces = random_pieces(dice);
    const std::int64_t need = dice(1, 30);
    const auto window = least_window(pieces, need, WindowScan::corrected);
    const auto least = least_of_all(pieces, need);
    REQUIRE(window.has_value() == least.has_value());
    if (!window) continue;
    ++found;
    REQUIRE(key_of(pieces, window->begin, window->end, need) == least);
    // The published scan finds one that is large enough, or none: never a better one.
    const auto shipped = least_window(pieces, need, WindowScan::as_shipped);
    if (shipped) REQUIRE(key_of(pieces, shipped->begin, shipped->end, need) >= least);
  }
  CHECK(found > test::rounds(5000));
}

TEST_CASE("the published scan misses windows with the last piece") {
  const std::vector<ScoredPiece> pieces{{10, Kind::evictable, 5, 1}, {10, Kind::evictable, 1, 1}};
  CHECK(least_window(pieces, 10, WindowScan::corrected) == PieceWindow{1, 2});
  CHECK(least_window(pieces, 10, WindowScan::as_shipped) == PieceWindow{0, 1});
}

TEST_CASE("scores are compared exactly, beyond 128 bits") {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
  CHECK(Score{kHuge, kHuge, kHuge} < Score{kHuge, kHuge, kHuge - 1});
  CHECK(Score{kHuge - 1, kHuge, kHuge} < Score{kHuge, kHuge, kHuge});
  CHECK(Score{2, 3, kHuge} <= Score{4, 6, kHuge});
  CHECK(Score{2, 3, kHuge} >= Score{4, 6, kHuge});
  CHECK(Score{kHuge, 1, 1} < Score{0, 0, 1});
  CHECK(Score{1, 1, 0} <= Score{2, 0, 0});
  CHECK(Score{0, 5, 1}.is_zero());
  CHECK_FALSE(Score{0, 0, 1}.is_zero());
}

// An arena of 12 B in units of 4: 5 B take [0, 8), 4 B [8, 12). Freed, the first leaves 8 B; what
// takes 1 B leaves [4, 8).
TEST_CASE("the pool places as an arena with best fit, and tells what lies where") {
  OnlinePool pool(Bytes{14}, Bytes{4});
  CHECK(pool.capacity() == Bytes{12});
  const auto first = pool.take(Bytes{5}, 7);
  const auto second = pool.take(Bytes{4}, 8);
  CHECK_FALSE(pool.take(Bytes{1}, 9));
  CHECK(pool.take(Bytes{}, 9));
  const auto owners = [&] {
    std::vector<std::pair<std::uint32_t, std::int64_t>> all;
    for (std::uint32_t p = pool.first_piece(); p != kNoPiece; p = pool.next_piece(p))
      all.emplace_back(pool.owner_of(p), pool.bytes_of(p).count());
    return all;
  };
  using Owners = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  CHECK(owners() == Owners{{7, 8}, {8, 4}});
  pool.give_back(*first);
  CHECK(pool.take(Bytes{1}, 9));
  CHECK(owners() == Owners{{9, 4}, {OnlinePool::kFree, 4}, {8, 4}});
  CHECK(pool.free_bytes() == Bytes{4});
  pool.give_back(*second);
  CHECK(owners() == Owners{{9, 4}, {OnlinePool::kFree, 8}});
}

}  // namespace plimsoll
