/// Limits of the memories of a pipeline's devices.
#pragma once

#include "policy/interface/entry.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// By device: the limit, at most what its memory has for plans; unlimited where there is none.
/// Throws InputError where two devices share a memory that is limited.
[[nodiscard]] std::vector<Bytes> device_limits(const Problem& problem,
                                               const std::vector<ProcessorId>& devices,
                                               const std::optional<Located<Bytes>>& limit);

/// By stage, of the replica with the least memory. Throws likewise.
[[nodiscard]] std::vector<Bytes> stage_limits(const Problem& problem,
                                              const std::vector<std::vector<ProcessorId>>& replicas,
                                              const std::optional<Located<Bytes>>& limit);

/// What `plan` claims that the fullest of some replicas holds; nothing where it claims no peaks.
[[nodiscard]] Bytes fullest_peak(const Plan& plan, const Platform& platform,
                                 const std::vector<ProcessorId>& replicas);

/// The answer where every schedule needs `smallest` on some device: for the one with the least
/// room.
[[nodiscard]] Infeasible too_little(const Problem& problem, const std::vector<ProcessorId>& devices,
                                    const std::vector<Bytes>& limits, Bytes smallest);

/// That of a planner that counts what there is at the most, and says so.
[[nodiscard]] Infeasible too_little_at_most(const Problem& problem,
                                            const std::vector<ProcessorId>& devices,
                                            const std::vector<Bytes>& limits, Bytes smallest);

}  // namespace plimsoll
