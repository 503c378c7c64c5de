/// The buffer that holds the latest version of every value, by tensor, microbatch and memory, while
/// a plan is built.
///
/// Flat: one entry for every tensor of every microbatch seen so far, and from it a list through the
/// buffers of the few memories that have the value. O(memories that have it) for each look-up.
#pragma once

#include "base/dense_id.hpp"
#include "plan/core/plan.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

class LatestStays {
 public:
  /// Both must outlive it; `buffers` may grow.
  LatestStays(const Workload& workload, const std::vector<Buffer>& buffers)
      : workload_(workload), buffers_(buffers) {}

  [[nodiscard]] std::optional<BufferId> find(TensorId tensor, std::uint32_t microbatch,
                                             MemoryId memory) const {
    const std::size_t entry = entry_of(tensor, microbatch);
    if (entry >= first_.size()) return std::nullopt;
    for (std::uint32_t b = first_[entry]; b != kNone; b = next_[b])
      if (buffers_[b].memory == memory) return BufferId{b};
    return std::nullopt;
  }

  /// The last of the buffers is the latest stay of its tensor in its memory.
  void add() {
    const auto added = static_cast<std::uint32_t>(buffers_.size() - 1);
    const Buffer& buffer = buffers_[added];
    const std::size_t entry = entry_of(buffer.tensor, buffer.microbatch);
    if (entry >= first_.size()) first_.resize(entry + workload_.tensors.size(), kNone);
    put(entry, added);
  }

  /// `buffer`, which was added before, is the latest stay again.
  void restore(BufferId buffer) {
    put(entry_of(buffers_[index(buffer)].tensor, buffers_[index(buffer)].microbatch),
        index(buffer));
  }

  /// Forgets the latest stay, if there is one.
  void forget(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
    const std::size_t entry = entry_of(tensor, microbatch);
    if (entry < first_.size()) forget(entry, memory);
  }

 private:
  /// What all microbatches share is filed under the first.
  std::size_t entry_of(TensorId tensor, std::uint32_t microbatch) const {
    const Lifetime lifetime = workload_[tensor].lifetime;
    const bool shared = lifetime == Lifetime::resident || lifetime == Lifetime::accumulated;
    const std::size_t row = shared ? 0 : microbatch;
    return row * workload_.tensors.size() + index(tensor);
  }

  void forget(std::size_t entry, MemoryId memory) {
    for (std::uint32_t* link = &first_[entry]; *link != kNone; link = &next_[*link])
      if (buffers_[*link].memory == memory) {
        *link = next_[*link];
        return;
      }
  }

  void put(std::size_t entry, std::uint32_t buffer) {
    forget(entry, buffers_[buffer].memory);
    if (next_.size() <= buffer) next_.resize(buffer + std::size_t{1}, kNone);
    next_[buffer] = first_[entry];
    first_[entry] = buffer;
  }

  const Workload& workload_;
  const std::vector<Buffer>& buffers_;
  std::vector<std::uint32_t> first_;  ///< by microbatch and tensor: a buffer, or kNone
  std::vector<std::uint32_t> next_;   ///< by buffer: the value's stay in another memory, or kNone
};

}  // namespace plimsoll
