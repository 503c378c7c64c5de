/// How long two tasks take that run at once.
///
/// A forward and a backward that overlap (DualPipe, DualPipeV, PyTorch's OVERLAP_F_B) take a time
/// of their own, F&B: a share of what they take one after the other, and no less than the longer of
/// the two takes alone. Their operators share it: what is saved is taken from all of them alike.
#pragma once

#include "base/quantity.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// Times of the steps of two tasks that overlap, of which `first` and `second` are the operators'
/// own times: of their first operators together, of the other operators of the one, of those of the
/// other. Their sum is F&B, rounded up to 1 ps; with all of a share each keeps its own.
/// O(operators). Precondition: neither is empty.
[[nodiscard]] std::vector<Time> overlapped_times(std::span<const Time> first,
                                                 std::span<const Time> second, Ratio share);

}  // namespace plimsoll
