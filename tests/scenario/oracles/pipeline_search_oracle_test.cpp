// The search for orders of pipelines against known schedules, through the formats that users see: a
// scenario in YAML in, the result's JSON out.
#include "support/oracles.hpp"
#include "support/split_pipelines.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;
using test::run_scenario;

json search_within(std::int64_t p, std::int64_t m, std::int64_t chunks, std::int64_t limit) {
  const json result = run_scenario(
      test::row_yaml(p, "0 s"), test::split_chain_yaml(p * chunks, {"1 s", "1 s", "1 s", 1, 1}),
      fmt::format("{{name: pipeline/search, microbatches: {}, virtual_stages: {}, memory_limit: {} "
                  "B}}",
                  m, chunks, limit));
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
  CHECK(result.at("bounds").at("makespan_s") <= result.at("makespan_s"));
  for (std::int64_t i = 0; i < p; ++i) CHECK(test::peak(result, fmt::format("hbm{}", i)) <= limit);
  return result;
}

}  // namespace

TEST_CASE("pipeline search oracles: no slower than the known schedules in their memory") {
  const json data = oracle("pipeline_search.json");
  for (const json& row : data.at("schedules")) {
    INFO(row.dump());
    CHECK(search_within(row.at("p"), row.at("m"), row.at("virtual_stages"), row.at("peak_chunks"))
              .at("makespan_s") <= row.at("makespan"));
  }
}

TEST_CASE("pipeline search oracles: the frontier of the adaptive search on a V") {
  // Known is the largest span, which leaves out that device i begins i chunk times later. No
  // makespan on a V is less than p - 1 above the work, since the last device begins that late; with
  // 2p chunks one is no more, and every chunk less costs one chunk time at least until the span is
  // what counts.
  const json data = oracle("pipeline_search.json");
  for (const json& row : data.at("adaptive")) {
    const std::int64_t p = row.at("p"), m = row.at("m");
    for (const auto& [chunks, bubble] : row.at("bubble").items()) {
      const std::int64_t limit = std::stoll(chunks);
      CAPTURE(p, m, limit);
      const json result = search_within(p, m, 2, limit);
      const double known =
          static_cast<double>(std::max(bubble.get<std::int64_t>(), p - 1 + 2 * p - limit));
      CHECK(result.at("makespan_s").get<double>() - static_cast<double>(6 * m) <= known);
    }
  }
}

TEST_CASE("pipeline/search is no slower than others where copies contend") {
  const std::string chain =
      test::split_chain_yaml(8, {"3 us", "3 us", "2 us", 2'000'000, 1'000'000});
  for (const char* sharing : {"fifo", "fair"})
    for (const char* topology : {"switch", "chain"}) {
      const std::string platform = fmt::format(
          "platform: box\nmemories: {{hbm: {{capacity: 80 MB}}}}\nprocessors: {{gpu: {{memory: "
          "hbm}}}}\ncluster: {{count: 4, topology: {}, link: {{name: net, bandwidth: 2 TB/s, "
          "duplex: half, sharing: {}}}}}\n",
          topology, sharing);
      const auto step = [&](const std::string& policy) {
        return run_scenario(platform, chain, "{name: pipeline/" + policy + ", microbatches: 8}");
      };
      const json found = step("search");
      CAPTURE(sharing, topology, found.at("claims").dump());
      REQUIRE(found.at("status") == "ok");
      CHECK(found.at("claims").at("makespan_s") == found.at("makespan_s"));
      CHECK(found.at("claims").value("left_out", json::array()).empty());
      for (const char* policy :
           {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-v", "v-half",
            "interleaved-1f1b", "interleaved-zb", "dualpipe", "chimera"})
        CHECK(found.at("makespan_s") <= step(policy).at("makespan_s"));
    }
}

TEST_CASE("pipeline search oracles: published times, faster than zb-2p between p and 2p") {
  const json data = oracle("pipeline_split.json");
  for (const json& row : data.at("bubbles")) {
    const int p = row.at("p"), m = row.at("m");
    const auto ms = [&](const char* key) {
      return fmt::format("{:.3f} ms", row.at(key).get<double>());
    };
    // Half of what a stage keeps is for the weight half.
    const std::string platform = test::row_yaml(p, ms("message"));
    const std::string workload = test::split_chain_yaml(p, {ms("F"), ms("B"), ms("W"), 2, 1});
    for (const int stages : {p, 5 * p / 4, 3 * p / 2, 2 * p}) {
      INFO(row.at("model") << " on " << p << ", " << m << " microbatches, room for " << stages);
      const auto run = [&](const std::string& policy) {
        return run_scenario(platform, workload,
                            fmt::format("{{name: pipeline/{}, microbatches: {}, memory_limit: {} "
                                        "B, virtual_stages: 1}}",
                                        policy, m, 2 * stages));
      };
      const json found = run("search"), known = run(stages == p ? "zb-1p" : "zb-2p");
      CHECK(found.at("makespan_s") <= known.at("makespan_s"));
      if (p < stages && stages < 2 * p) CHECK(found.at("makespan_s") < known.at("makespan_s"));
      CHECK(found.at("claims").at("makespan_s") == found.at("makespan_s"));
      CHECK(test::peak(found, "hbm0") <= 2 * stages);
    }
  }
}

}  // namespace plimsoll
