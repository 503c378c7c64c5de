/// Workloads from text, for tests.
#pragma once

#include "workload/workload_file.hpp"

#include <string>

namespace plimsoll {

inline Workload build_text(const std::string& text, const WorkloadOptions& options = {}) {
  return build(read_workload(parse_document(text, "test.yaml")), options);
}

/// What reading or building `text` says; "" where it says nothing.
inline std::string error_of(const std::string& text, const WorkloadOptions& options = {}) {
  try {
    static_cast<void>(build_text(text, options));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// A network of `layers` (flow or block YAML, indented by two) over values of `shape`.
inline std::string network(const std::string& shape, const std::string& layers,
                           const std::string& loss = "none") {
  return "workload: net\ninput: " + shape + "\nloss: " + loss + "\nlayers:\n" + layers;
}

inline std::string shipped(const std::string& name) {
  return std::string(PLIMSOLL_SOURCE_DIR) + "/workloads/" + name + ".yaml";
}

/// One block of a shipped network alone: the block's input is the network's.
inline Node block_alone(const std::string& network) {
  Node file = read_document(shipped(network));
  Diagnostics diagnostics;
  file.set("input", parse_value("[sequence, hidden]", "test"), diagnostics);
  file.set("layers", parse_value("[{block: {heads: heads}}]", "test"), diagnostics);
  diagnostics.throw_if_errors();
  return file;
}

inline const Operator& find_operator(const Workload& workload, const std::string& name) {
  for (const Operator& op : workload.operators)
    if (op.name == name) return op;
  throw std::out_of_range("no operator " + name);
}

/// The names of the tensors in a list, joined by spaces.
inline std::string names(const Workload& workload, TensorList slice) {
  std::string text;
  for (const TensorId id : workload.list(slice))
    text += (text.empty() ? "" : " ") + workload[id].name;
  return text;
}

}  // namespace plimsoll
