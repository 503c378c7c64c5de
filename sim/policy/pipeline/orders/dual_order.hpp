/// The order that DualPipe and DualPipeV share.
///
/// DeepSeek-AI 2025, DualPipe (github.com/deepseek-ai/DualPipe): a device holds two chunks, and in
/// the steady state a forward of the one overlaps a backward of the other.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// One of the two chunks of a device: its slot, and the first of its microbatches.
struct DualChunk {
  std::uint32_t slot = 0;
  std::uint32_t first_microbatch = 0;
};

/// The tasks of rank i of p for m microbatches through each of both chunks, with chunk 0 the one
/// that is nearer to the input. O(m). Precondition: i < p, m >= 2p.
[[nodiscard]] std::vector<Task> dual_order(std::uint32_t rank, std::uint32_t ranks,
                                           std::uint32_t microbatches, DualChunk chunk_0,
                                           DualChunk chunk_1);

}  // namespace plimsoll
