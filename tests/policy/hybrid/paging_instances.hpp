/// The small graphs with proven least energies: tests/oracles/paging_energy.json.
#pragma once

#include "support/oracles.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace plimsoll::test {

struct PagingInstance {
  std::string name, workload, board;
  json rows;  ///< budget, paging, recompute, exact, poet
};

namespace detail {

/// Operator `i` makes the value `i`. Energies are in uJ, times 1 s.
inline std::string paging_operator(std::size_t i, double energy, std::int64_t bytes,
                                   const std::vector<std::size_t>& reads) {
  std::string inputs;
  for (const std::size_t read : reads)
    inputs += fmt::format("{}v{}", inputs.empty() ? "" : ", ", read);
  return fmt::format(
      "    - {{name: o{0}, inputs: [{1}], time: 1 s, energy: {2:.15f} uJ, outputs: {{v{0}: {3} "
      "B}}}}\n",
      i, inputs, energy, bytes);
}

inline std::string paging_board(const std::string& card) {
  return fmt::format(
      "platform: board\nmemories:\n  ram: {{capacity: unlimited}}\n  card: {{capacity: unlimited, "
      "{}}}\n"
      "processors:\n  cpu: {{memory: ram}}\nlinks:\n  bus: {{between: [ram, card], duplex: "
      "half}}\n",
      card);
}

/// A chain of the oracle, unrolled: forwards, then for each but the last a backward of twice its
/// energy, or of 1, that reads its input, its output and the gradient before.
inline std::string paging_chain(const json& row) {
  const json& energies = row["ef"];
  const json& bytes = row["mf"];
  const std::size_t last = energies.size() - 1;
  std::string yaml;
  for (std::size_t i = 0; i <= last; ++i)
    yaml += paging_operator(i, energies[i].get<double>(), bytes[i].get<std::int64_t>(),
                            i == 0 ? std::vector<std::size_t>{} : std::vector{i - 1});
  for (std::size_t k = last; k-- > 0;) {
    const std::size_t i = 2 * last - k;
    const double energy = energies[k].get<double>();
    std::vector<std::size_t> reads{k, k + 1};
    if (i - 1 != k + 1) reads.push_back(i - 1);
    yaml +=
        paging_operator(i, energy == 0 ? 1 : 2 * energy, bytes[k + 1].get<std::int64_t>(), reads);
  }
  return yaml;
}

}  // namespace detail

inline std::string by_byte(const json& in, const json& out) {
  return fmt::format("read: {{energy: {} uJ/B}}, write: {{energy: {} uJ/B}}", in.get<double>(),
                     out.get<double>());
}

inline std::vector<PagingInstance> paging_instances() {
  const std::string head = "workload: g\ngraph:\n  operators:\n";
  const json all = oracle("paging_energy.json");
  std::vector<PagingInstance> instances;
  for (const auto& [name, it] : all["instances"].items()) {
    std::string yaml = head;
    for (std::size_t i = 0; i < it["nodes"].size(); ++i)
      yaml += detail::paging_operator(i, it["nodes"][i][0].get<double>(),
                                      it["nodes"][i][1].get<std::int64_t>(),
                                      it["nodes"][i][2].get<std::vector<std::size_t>>());
    std::string card;
    if (it.contains("storage")) {
      const auto access = [&](const char* way) {
        const json& cost = it["storage"][way];
        return fmt::format("{}: {{latency: {}, bandwidth: {}}}", way,
                           cost["latency"].get<std::string>(),
                           cost["bandwidth"].get<std::string>());
      };
      card = fmt::format("{}, {}, power: {{idle: 0 W, active: {}}}", access("read"),
                         access("write"), it["storage"]["power"].get<std::string>());
    } else {
      card = by_byte(it["page_in"], it["page_out"]);
    }
    instances.push_back({name, yaml, detail::paging_board(card), it["rows"]});
  }
  for (const json& row : all["random"]) {
    const json one = {{"budget", row["B"]},
                      {"paging", 1},
                      {"recompute", 1},
                      {"exact", row["exact"]},
                      {"poet", row["poet"]}};
    instances.push_back({"random", head + detail::paging_chain(row),
                         detail::paging_board(by_byte(row["pi"], row["po"])), json::array({one})});
  }
  return instances;
}

/// The parameters that a row asks for.
inline std::string paging_row(const json& row) {
  return fmt::format(", budget: {} B, paging: {}, recompute: {}", row["budget"].get<std::int64_t>(),
                     row["paging"] == 1, row["recompute"] == 1);
}

/// Energies of the oracle are floats of uJ.
inline double in_uj(Energy energy) {
  return in_joules(energy) * 1e6;
}

}  // namespace plimsoll::test
