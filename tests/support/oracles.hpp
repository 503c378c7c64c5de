/// The known answers of tests/oracles, through the formats that users see: a scenario in YAML in,
/// the result's JSON out.
#pragma once

#include "report/run/json_report.hpp"
#include "scenario/run/run.hpp"
#include "support/chains.hpp"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace plimsoll::test {

using nlohmann::json;

inline json oracle(const std::string& name) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/" + name);
  return json::parse(file);
}

inline std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    out += "  " + text.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

inline Scenario scenario_of(const std::string& platform, const std::string& workload,
                            const std::string& policy) {
  const std::string text = "scenario: oracle\nplatform:\n" + indented(platform) + "workload:\n" +
                           indented(workload) + "policy: " + policy + "\n";
  return read_scenario(parse_document(text, "oracle.yaml"), ".");
}

inline json run_scenario(const std::string& platform, const std::string& workload,
                         const std::string& policy) {
  return json::parse(json_report(run(scenario_of(platform, workload, policy)))).at(0);
}

inline Chain chain_of(const json& it) {
  return {it.at("f"), it.at("b"), it.at("a"), it.at("abar"), {}, {}};
}

inline OneGpu gpu_of(const json& instance, std::optional<std::int64_t> limit) {
  return {limit, instance.at("bw_out"), instance.at("bw_in"), "ideal", ""};
}

inline json run_chain(const json& instance, std::optional<std::int64_t> limit,
                      const std::string& policy) {
  return run_scenario(platform_yaml(gpu_of(instance, limit)), chain_yaml(chain_of(instance)),
                      policy);
}

inline std::int64_t peak(const json& result, const std::string& memory = "hbm") {
  return result.at("memories").at(memory).at("peak_requested_bytes");
}

}  // namespace plimsoll::test
