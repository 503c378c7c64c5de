/// The networks and platforms of the library, for tests.
#pragma once

#include "platform/file/platform_file.hpp"
#include "workload/workload_file.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace plimsoll::test {

inline const std::string kSource = PLIMSOLL_SOURCE_DIR;

inline WorkloadSource library_network(const std::string& name) {
  return read_workload(read_document(kSource + "/workloads/" + name + ".yaml"));
}

/// Networks of so many blocks or parameters that tests run them with two blocks; the number of a
/// file that says how many there are.
inline const std::map<std::string, std::vector<std::string>> kLargeNetworks{
    {"deepseek-v3", {"dense_blocks", "blocks"}},
    {"gpt-neo-2.7b", {"pairs"}},
    {"gpt2-xl", {"blocks"}},
    {"gpt3-175b", {"blocks"}},
    {"llama2-7b", {"blocks"}},
    {"llama3-405b", {"blocks"}},
    {"llama3-70b", {"blocks"}},
    {"llama3-8b", {"blocks"}},
    {"megatron-175b", {"blocks"}},
    {"megatron-1t", {"blocks"}},
    {"megatron-22b", {"blocks"}},
    {"megatron-530b", {"blocks"}},
    {"mistral-7b", {"blocks"}},
    {"mixtral-8x7b", {"blocks"}},
    {"opt-350m", {"blocks"}},
    {"qwen3-32b", {"blocks"}},
    {"qwen3-8b", {"blocks"}},
    {"t5-large", {"blocks"}}};

/// All others, as layers: POET's training steps beside them are compute graphs.
inline std::vector<std::string> library() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/workloads"))
    if (const std::string name = entry.path().stem().string();
        entry.path().extension() == ".yaml" && !kLargeNetworks.contains(name) &&
        !name.starts_with("poet-"))
      names.insert(name);
  return {names.begin(), names.end()};
}

/// Whether it can be built under `autocast`: what that makes of an LSTM is not known.
inline bool takes_autocast(const std::string& network) {
  return network != "lstm-lm" && network != "bilstm";
}

/// A large network with so many blocks of each kind.
inline Workload large_network(const std::string& name, std::int64_t blocks,
                              WorkloadOptions options) {
  for (const std::string& number : kLargeNetworks.at(name))
    options.with.push_back({{number, {}}, blocks});
  return build(library_network(name), options);
}

inline Platform library_platform(const std::string& name) {
  Diagnostics diagnostics;
  Platform platform = load_platform(kSource + "/platforms/" + name + ".yaml", diagnostics);
  diagnostics.throw_if_errors();
  return platform;
}

struct Machine {
  std::string platform, processor;
};

/// A server's GPU, one card of a PCIe workstation, a board that computes in DRAM and stores on SD.
inline const std::vector<Machine> kMachines{
    {"v100-sxm2-host", "gpu"}, {"pcie-4gpu-workstation", "gpu0"}, {"raspberry-pi-4b", "cpu"}};

}  // namespace plimsoll::test
