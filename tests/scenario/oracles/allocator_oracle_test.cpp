// The known answers for the caching allocator, through the formats that users see. A chain whose
// stages keep the given sizes, and nothing else, asks for them one after the other.
#include "support/oracles.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;

json run_requests(const std::vector<std::int64_t>& sizes, const std::string& allocator) {
  test::Chain chain;
  chain.output.push_back(0);
  for (const std::int64_t bytes : sizes) {
    chain.forward.push_back(1);
    chain.backward.push_back(1);
    chain.output.push_back(0);
    chain.saved.push_back(bytes);
  }
  test::OneGpu gpu;
  gpu.allocator = allocator;
  const json result = test::run_scenario(platform_yaml(gpu), chain_yaml(chain), "none");
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("claims").at("peak_bytes").at("hbm") == test::peak(result));
  return result.at("memories").at("hbm");
}

std::string divided_by(const json& divisions) {
  return fmt::format("{{caching: {{roundup_power2_divisions: {}}}}}", divisions.get<int>());
}

}  // namespace

TEST_CASE("caching oracles: a tensor alone takes the known block and segment") {
  const json data = oracle("allocators.json");
  for (const json& row : data.at("caching").at("single_request_ladder")) {
    INFO(row);
    const json hbm = run_requests({row.at("request")}, "caching");
    CHECK(hbm.at("peak_requested_bytes") == row.at("request"));
    CHECK(hbm.at("peak_allocated_bytes") == row.at("block"));
    CHECK(hbm.at("peak_held_bytes") == row.at("segment"));
    CHECK(hbm.at("peak_reserved_bytes") == row.at("segment"));
    const double unused = 1 - row.at("block").get<double>() / row.at("segment").get<double>();
    CHECK(hbm.at("fragmentation").get<double>() == Approx(unused));
  }
  for (const json& row : data.at("caching").at("roundup_power2_ladder")) {
    INFO(row);
    const json hbm = run_requests({row.at("request")}, divided_by(row.at("divisions")));
    CHECK(hbm.at("peak_allocated_bytes") == row.at("rounded"));
  }
}

TEST_CASE("caching oracles: tensors one after the other have the known peaks") {
  const json data = oracle("allocators.json");
  int played = 0;
  for (const json& trace : data.at("caching").at("traces")) {
    INFO(trace.at("name"));
    std::vector<std::int64_t> sizes;
    bool only_allocates = true;
    for (const json& step : trace.at("steps")) {
      only_allocates &= step.at("op") == "alloc";
      if (only_allocates) sizes.push_back(step.at("bytes"));
    }
    if (!only_allocates) continue;
    ++played;
    const json& settings = trace.at("settings");
    const json hbm =
        run_requests(sizes, settings.contains("div") ? divided_by(settings.at("div")) : "caching");
    const json& peak = trace.at("final").at("peak");
    CHECK(hbm.at("peak_requested_bytes") == peak.at("requested"));
    CHECK(hbm.at("peak_allocated_bytes") == peak.at("allocated"));
    CHECK(hbm.at("peak_held_bytes") == peak.at("reserved"));
  }
  CHECK(played == 2);
}

TEST_CASE("caching oracles: expandable segments hold the known pages") {
  // The first three tensors of the trace, of 30 MiB each.
  const json data = oracle("allocators.json");
  const json& pages = data.at("caching").at("expandable_segments_expectations").at(0);
  const json& reserved = pages.at("reserved_after_each_alloc");
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < 3; ++i) {
    sizes.push_back(std::int64_t{30} << 20);
    const json hbm = run_requests(sizes, "{caching: {expandable_segments: true}}");
    CHECK(hbm.at("peak_held_bytes") == reserved.at(i));
  }
}

}  // namespace plimsoll
