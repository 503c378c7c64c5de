/// Lower bounds on the makespan of a pipeline with a flush, from what each device may keep.
///
/// Of a microbatch a device keeps `saved` of each of its chunks, from the end of its forward to
/// the start of its backward, and then `held` until the start of its weight half, one task at a
/// time. Whatever else it keeps only makes things worse. So it waits:
///
///   - At both ends. Until its first backward it does forwards, no more than fit. After the start
///     of its last forward it does the backwards and weight halves of no more than fits then. The
///     backward does not begin before one microbatch has come there, nor does the makespan end
///     before the last one has got back; and where all forwards do not fit at once, the one
///     stretch is over before the other begins. So all its work, and what work cannot fill of both,
///     is within the makespan.
///   - From turn to turn. Where N microbatches of a chunk fit, the (k + N)-th forward begins after
///     the k-th backward, so a round trip R after the k-th forward. Where `held` of one microbatch
///     does not fit beside the N, it waits for a weight half, or for one backward more, too.
///   - For room. All that is kept, for the round trips but for the own forward and backward, has to
///     go through the limit.
///
/// Example: p equal devices, F = B = W = 1, messages c, a limit of p saved = p held, m > p. The
/// first backward of device 0 begins after p + p - 1 + 2 (p - 1) c, p forwards fit, so that it
/// waits for (p - 1)(1 + 2 c). Its last forward is 2 p - 1 + 1 + 2 (p - 1) c before the end, and p
/// backwards and weight halves fit: it waits for (p - 1) 2 c. The makespan is 3 m + (p - 1)(1 +
/// 4 c) at least, which zb-h1 reaches without messages.
#pragma once

#include "policy/pipeline/bounds/heads_and_tails.hpp"

namespace plimsoll {

/// No orders that keep to `limits` (by device, bytes; INT64_MAX where there is none) have a shorter
/// makespan, unless they move what is kept from device to device or overlap tasks; 0 where memory
/// says nothing.
/// `ends` are those of the network. O(slots).
[[nodiscard]] std::int64_t memory_bound(const TaskNetwork& network, const HeadsAndTails& ends,
                                        const std::vector<std::int64_t>& limits);

}  // namespace plimsoll
