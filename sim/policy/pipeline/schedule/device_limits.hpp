/// Limits of the memories of a pipeline's devices.
#pragma once

#include "policy/entry.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// By device: the limit, at most what its memory has for plans; unlimited where there is none.
/// Throws InputError where two devices share a memory that is limited.
[[nodiscard]] std::vector<Bytes> device_limits(const Problem& problem,
                                               const std::vector<ProcessorId>& devices,
                                               const std::optional<Located<Bytes>>& limit);

/// The answer where every schedule needs `smallest` on some device: for the one with the least
/// room.
[[nodiscard]] Infeasible too_little(const Problem& problem, const std::vector<ProcessorId>& devices,
                                    const std::vector<Bytes>& limits, Bytes smallest);

/// That of a planner that counts what there is at the most, and says so.
[[nodiscard]] Infeasible too_little_at_most(const Problem& problem,
                                            const std::vector<ProcessorId>& devices,
                                            const std::vector<Bytes>& limits, Bytes smallest);

}  // namespace plimsoll
