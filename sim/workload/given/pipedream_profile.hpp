/// PipeDream's profiles of networks, `graph.txt`, as workloads.
///
///   file    node lines and edge lines, in any order; empty lines
///   node    ID " -- " DESCRIPTION " -- " "forward_compute_time=" MS ", backward_compute_time=" MS
///           ", activation_size=" (BYTES | "[" BYTES { "; " BYTES } "]") ", parameter_size=" BYTES
///           [ " -- stage_id=" NUMBER ]
///   edge    TAB ID " -- " ID
///
/// As github.com/msr-fiddle/pipedream writes them (Narayanan et al. 2019, "PipeDream: Generalized
/// Pipeline Parallelism for DNN Training", SOSP). Times and sizes are those of the whole
/// mini-batch, which the file does not name. A node is an operator `ID/WORD`, with the first word
/// of its description, that makes one value of its activation size, a list of them summed; what its
/// backward needs is that and what it reads. Where the edges leave a choice, nodes run in the order
/// of their numbers.
///
/// As PipeDream's own program does: a source whose description begins with `Input` is an input of
/// the network, whose time counts nothing, and a sink that begins with `__getitem__` is left out;
/// `stage_id` is a former partition, and is read over.
#pragma once

#include "workload/given/graph_workload.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace plimsoll {

/// "graph.txt" and the like.
[[nodiscard]] bool is_pipedream_path(const std::filesystem::path& path);

/// The workload is named after the file, or after its folder where that is `graph.txt`.
/// O(text + nodes log nodes). Throws InputError with all that is wrong, by line and column: lines
/// of another form, nodes that are there twice or that an edge does not find, a cycle; files above
/// 32 MiB.
[[nodiscard]] GraphSpec read_pipedream(const std::filesystem::path& path);
/// The same from text; `origin` stands for the path in messages.
[[nodiscard]] GraphSpec parse_pipedream(std::string_view text, const std::string& origin);

}  // namespace plimsoll
