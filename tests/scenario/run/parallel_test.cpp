#include "scenario/run/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// Later jobs end first, as often as threads allow.
std::size_t slow_square(std::size_t i) {
  std::this_thread::sleep_for(std::chrono::microseconds(i % 7 == 0 ? 300 : 10));
  return i * i;
}

}  // namespace

TEST_CASE("parallel: results by number, whatever the number of threads") {
  std::vector<std::size_t> expected, told;
  for (std::size_t i = 0; i < 200; ++i) expected.push_back(i * i);
  for (std::size_t i = 1; i <= 200; ++i) told.push_back(i);
  for (const unsigned jobs : {1U, 2U, 5U, 64U}) {
    for (const std::size_t window : {std::size_t{1}, std::size_t{3}, std::size_t{0}}) {
      INFO(jobs << " jobs, window " << window);
      std::vector<std::size_t> ended;
      CHECK(by_number<std::size_t>(200, {.jobs = jobs, .window = window}, slow_square,
                                   [&](std::size_t n) { ended.push_back(n); }) == expected);
      CHECK(ended == told);
    }
  }
}

TEST_CASE("parallel: as they end, each result once, and a slow job holds up no others") {
  for (const unsigned jobs : {1U, 2U, 5U}) {
    for (const std::size_t window : {std::size_t{2}, std::size_t{0}}) {
      INFO(jobs << " jobs, window " << window);
      std::atomic<std::size_t> consumed = 0;
      std::vector<std::size_t> seen, expected;
      const auto work = [&](std::size_t i) {
        // The first ends when all others are handed over; alone on its thread there are none.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (i == 0 && jobs > 1 && consumed < 199 && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();
        return slow_square(i);
      };
      as_they_end<std::size_t>(200, {.jobs = jobs, .window = window}, work,
                               [&](std::size_t i, std::size_t square) {
                                 CHECK(square == i * i);
                                 seen.push_back(i);
                                 ++consumed;
                               });
      CHECK((jobs == 1 ? seen.front() : seen.back()) == 0);
      std::ranges::sort(seen);
      for (std::size_t i = 0; i < 200; ++i) expected.push_back(i);
      CHECK(seen == expected);
    }
  }
}

TEST_CASE("parallel: as they end, an exception of a job or of the consumer ends the run") {
  for (const unsigned jobs : {1U, 4U}) {
    std::atomic<std::size_t> started = 0;
    const auto run = [&](std::size_t thrower, std::size_t refused) {
      as_they_end<std::size_t>(
          10'000, {.jobs = jobs},
          [&](std::size_t i) {
            ++started;
            if (i == thrower) throw std::runtime_error("job " + std::to_string(i));
            return slow_square(i);
          },
          [&](std::size_t i, std::size_t) {
            if (i == refused) throw std::runtime_error("disk full");
          });
    };
    CHECK_THROWS_WITH(run(40, 10'000), "job 40");
    CHECK_THROWS_WITH(run(10'000, 25), "disk full");
    CHECK(started < 10'000);
  }
}

TEST_CASE("parallel: no jobs at all") {
  as_they_end<int>(
      0, {.jobs = 4}, [](std::size_t) -> int { throw std::logic_error("never called"); },
      [](std::size_t, int) { FAIL("never called"); });
}

TEST_CASE("parallel: never more results at a time than the window") {
  // Started and not yet consumed: at most the window; the consumer is slower than the jobs.
  std::atomic<int> alive = 0, most = 0;
  const auto work = [&](std::size_t) {
    const int now = ++alive;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    return 0;
  };
  const auto consume = [&](std::size_t, int) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --alive;
  };
  as_they_end<int>(100, {.jobs = 4, .window = 6}, work, consume);
  CHECK(most <= 6);
  CHECK(alive == 0);
}

TEST_CASE("parallel: the exception of the least number is thrown, however late it comes") {
  for (const unsigned jobs : {1U, 2U, 8U}) {
    std::atomic<bool> has_thrown = false;
    std::atomic<std::size_t> started = 0;
    const auto run = [&] {
      as_they_end<std::size_t>(
          10'000, {.jobs = jobs},
          [&](std::size_t i) {
            ++started;
            // Job 40 throws after job 41 has; alone on its thread it is the first.
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
            while (i == 40 && jobs > 1 && !has_thrown &&
                   std::chrono::steady_clock::now() < deadline)
              std::this_thread::yield();
            if (i == 41) has_thrown = true;
            if (i == 40 || i == 41) throw std::runtime_error("job " + std::to_string(i));
            return slow_square(i);
          },
          [](std::size_t, std::size_t) {});
    };
    CHECK_THROWS_WITH(run(), "job 40");
    CHECK(started < 10'000);
  }
}

}  // namespace plimsoll
