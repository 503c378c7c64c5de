// Energies of inferences that were measured on boards, against the boards' powers.
#include "support/policies.hpp"

#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using Row = nlohmann::json;

std::vector<Row> measured_rows() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/mlperf_tiny_energy.json");
  return nlohmann::json::parse(file).at("rows").get<std::vector<Row>>();
}

Platform board_of(const Row& row) {
  const std::string board = row.at("board");
  std::string text = "platform: measured\nextends: " + board + "\n";
  if (row.contains("operating_point"))
    text += fmt::format("processors: {{cluster: {{operating_point: {}}}}}\n",
                        row.at("operating_point").get<std::string>());
  Diagnostics diagnostics;
  Platform platform = read_platform(parse_document(text, "measured.yaml"), diagnostics,
                                    [](const Located<std::string>& name) {
                                      return read_document(std::string(PLIMSOLL_SOURCE_DIR) +
                                                           "/platforms/" + name.value + ".yaml");
                                    });
  diagnostics.throw_if_errors();
  return platform;
}

/// An inference as one operator of the measured time, which is given for the first operating point.
Workload inference(double per_second, const Platform& board) {
  per_second /= as_fraction(board.processors.front().clock);
  return test::workload_of(
      fmt::format("workload: inference\ngraph:\n  operators:\n    - {{name: all, time: {} ns, "
                  "outputs: {{y: 1 B}}}}\n",
                  static_cast<std::int64_t>(1e9 / per_second)));
}

/// How far a power that is the same for all networks may be from what each draws: 5 %, and where
/// networks differ by more, what their own spread leaves.
double tolerance_of(const std::string& board) {
  if (board == "stm32h7a3") return 0.056;  // 146.2 to 162.7 mW
  if (board == "efr32mg24") return 0.126;  // 8.717 to 11.03 mW: the matrix unit is at work or not
  if (board == "gap9") return 0.26;        // 41.4 to 64.9 mW: so is NE16
  return 0.05;
}

}  // namespace

TEST_CASE("energy of measured inferences follows from the power of the boards") {
  int close = 0;
  for (const Row& row : measured_rows()) {
    CAPTURE(row.dump());
    const Platform board = board_of(row);
    const test::Played it =
        test::play_policy("none", inference(row.at("inferences_per_s"), board), board);
    const double measured = row.at("energy_uj").get<double>() * 1e-6;
    const double error = in_joules(it.metrics.energy->total) / measured - 1;
    CHECK(std::abs(error) <= tolerance_of(row.at("board")));
    close += std::abs(error) <= 0.05 ? 1 : 0;
  }
  CHECK(close >= 9);
}

}  // namespace plimsoll
