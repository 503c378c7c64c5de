/// The order of 1F1B, shared by its variants.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

namespace plimsoll {

/// Forwards of device i before its first backward.
[[nodiscard]] std::uint32_t warm_up_of_1f1b(std::uint32_t devices, std::uint32_t device,
                                            std::uint32_t microbatches);

/// A ScheduleRule. Device i: w = min(p-1-i, m) forwards; then for k = 0..m-w-1 forward w+k,
/// backward k; then the rest.
[[nodiscard]] Schedule one_f_one_b(std::uint32_t devices, std::uint32_t microbatches,
                                   std::uint32_t virtual_stages);

}  // namespace plimsoll
