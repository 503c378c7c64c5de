/// Blocks of a network, by the names that people know them by.
///
/// Layers are named by their path through the blocks: `block_3/attention_1/softmax_1`. A pattern,
/// in which `*` stands for any characters, names the shortest part of a path, from its beginning up
/// to a `/` or its end, that it matches: `block_*` the blocks of a transformer, and
/// `*/attention_1` their attentions. So it is with the paths of an ONNX file and, by `.`, with the
/// modules of a profile.
#pragma once

#include "base/format.hpp"
#include "base/work.hpp"
#include "workload/core/workload.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// Every block or layer that `from` names; with `to`, each of them and all behind it, up to the end
/// of the next that `to` names (those behind the last one are not meant).
struct BlockNames {
  Located<std::string> from;
  std::optional<Located<std::string>> to;
};

/// Written as a pattern, or as `{from: PATTERN, to: PATTERN}`.
[[nodiscard]] Format<BlockNames> block_names_format();

/// Forwards [begin, end), which run one after the other.
struct ForwardRange {
  std::uint32_t begin = 0, end = 0;
  std::string name;  ///< "block_3"
  Location where;    ///< of the pattern; of none where nobody named it
};

/// In execution order. Throws InputError: a pattern that nothing matches, with the nearest name;
/// two that share a layer. O(n log n) of the parts of all paths, and for each pattern those parts
/// that begin as it does before its first `*`, or those that end as it does behind its last,
/// whichever are fewer.
[[nodiscard]] std::vector<ForwardRange> named_blocks(const Workload& workload,
                                                     std::span<const BlockNames> names,
                                                     Work work = Work());

/// The outermost blocks that hold several layers; where there are none, every layer.
[[nodiscard]] std::vector<ForwardRange> outermost_blocks(const Workload& workload);

}  // namespace plimsoll
