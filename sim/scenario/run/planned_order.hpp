/// Memories whose allocator plans the order of the operators, too: `static: {method: olla}`.
///
/// Steiner et al. 2023, "MODeL: Memory Optimizations for Deep Learning" (OLLA), arXiv:2210.12924: an
/// order of least peak, then addresses without fragmentation. The order is that of `order/peak`. It
/// takes the place of the workload's own, so it is planned where the policy is `none`; all others
/// have an order of their own, and what they keep is only placed.
#pragma once

#include "scenario/run/run.hpp"

namespace plimsoll {

/// `name` without further parameters, on the processor that `like` runs on.
[[nodiscard]] BoundPolicy policy_on_processor_of(const BoundPolicy& like, const std::string& name);

/// The policy that plans the order in place of `policy`, if any does.
[[nodiscard]] std::optional<BoundPolicy> policy_that_orders(const BoundPolicy& policy,
                                                            const Platform& platform);

/// A note on a plan with an order of its own, in memories that would plan one; empty otherwise.
[[nodiscard]] std::string note_on_kept_order(const BoundPolicy& policy, const Plan& plan,
                                             const Platform& platform);

/// Whether what `run` keeps ends above what `given`, a plan of the same workload in its own order,
/// has alive at one time: then `given` may end lower.
[[nodiscard]] bool may_end_lower(const Plan& given, const RunResult& run, const Platform& platform);

/// Whether `a` runs and `b` does not, or it ends lower in memories that plan orders.
[[nodiscard]] bool ends_lower(const RunResult& a, const RunResult& b, const Platform& platform);

}  // namespace plimsoll
