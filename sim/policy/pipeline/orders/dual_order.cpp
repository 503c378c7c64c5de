#include "policy/pipeline/orders/dual_order.hpp"

#include <array>

namespace plimsoll {

namespace {

class DualOrder {
 public:
  DualOrder(DualChunk chunk_0, DualChunk chunk_1) : chunks_{chunk_0, chunk_1} {}

  void forward(std::size_t chunk) { add(Task::Kind::forward, chunk, forwards_[chunk]++); }
  void backward(std::size_t chunk) { add(Task::Kind::backward, chunk, backwards_[chunk]++); }
  void backward_input(std::size_t chunk) {
    add(Task::Kind::backward_input, chunk, backwards_[chunk]++);
    pending_.push_back(order_.back());
  }
  /// The oldest pending weight gradient, if any.
  void weight() {
    if (done_ == pending_.size()) return;
    order_.push_back(pending_[done_++]);
    order_.back().kind = Task::Kind::backward_weight;
  }
  /// A forward of `chunk` with a backward of the other.
  void overlapped(std::size_t chunk) {
    forward(chunk);
    order_.back().overlaps_next = true;
    backward(1 - chunk);
  }
  std::vector<Task> take() { return std::move(order_); }

 private:
  void add(Task::Kind kind, std::size_t chunk, std::uint32_t n) {
    order_.push_back({kind, chunks_[chunk].slot, chunks_[chunk].first_microbatch + n});
  }

  std::array<DualChunk, 2> chunks_;
  std::array<std::uint32_t, 2> forwards_{}, backwards_{};
  std::vector<Task> order_, pending_;
  std::size_t done_ = 0;  ///< of the pending ones
};

/// Both chunks drain. Halves begin in round (i+1) // 2: with chunk 0 where i is even, with chunk 1
/// where it is odd.
void drain(DualOrder& order, std::uint32_t rank) {
  const std::uint32_t split_from = (rank + 1) / 2;
  for (std::uint32_t round = 0; round <= rank; ++round) {
    const bool split_0 = round >= split_from;
    const bool split_1 = split_0 && (round > split_from || rank % 2 == 1);
    split_1 ? order.backward_input(1) : order.backward(1);
    split_0 ? order.backward_input(0) : order.backward(0);
  }
}

}  // namespace

std::vector<Task> dual_order(std::uint32_t rank, std::uint32_t ranks, std::uint32_t microbatches,
                             DualChunk chunk_0, DualChunk chunk_1) {
  DualOrder order(chunk_0, chunk_1);
  const std::uint32_t beyond = ranks - 1 - rank;
  for (std::uint32_t n = 0; n < 2 * beyond; ++n) order.forward(0);
  for (std::uint32_t n = 0; n <= rank; ++n) {
    order.forward(0);
    order.forward(1);
  }
  for (std::uint32_t n = 0; n < beyond; ++n) {
    order.backward_input(1);
    order.weight();
    order.forward(1);
  }
  for (std::uint32_t n = 0; n < microbatches - 2 * ranks + rank + 1; ++n) {
    // The last rank has its first backward before it: a pair would only hold that up.
    if (n == 0 && beyond == 0) {
      order.forward(0);
      order.backward(1);
    } else {
      order.overlapped(0);
    }
    order.overlapped(1);
  }
  for (std::uint32_t n = 0; n < beyond; ++n) {
    order.backward(1);
    order.overlapped(1);
  }
  drain(order, rank);
  for (std::uint32_t n = 0; n < beyond; ++n) {
    order.weight();
    order.backward_input(0);
  }
  for (std::uint32_t n = 0; n <= rank; ++n) order.weight();
  return order.take();
}

}  // namespace plimsoll
