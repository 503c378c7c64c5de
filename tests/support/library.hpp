/// The networks and platforms of the library, for tests.
#pragma once

#include "platform/file/platform_file.hpp"
#include "workload/workload_file.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace plimsoll::test {

inline const std::string kSource = PLIMSOLL_SOURCE_DIR;

inline WorkloadSource library_network(const std::string& name) {
  return read_workload(read_document(kSource + "/workloads/" + name + ".yaml"));
}

/// All networks, as layers: POET's training steps beside them are compute graphs.
inline std::vector<std::string> library() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/workloads"))
    if (const std::filesystem::path& path = entry.path();
        path.extension() == ".yaml" && !path.stem().string().starts_with("poet-"))
      names.insert(path.stem().string());
  return {names.begin(), names.end()};
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
