/// How far a real machine may be from the figures of a candidate: what its platform rests on.
///
///   fitted     to measurements (`plimsoll calibrate`), and judged by others: the 95th percentile
///              of these test errors, either way
///   best case  shares of what datasheets promise: the real machine is slower, by as much as the
///              worst that was found (docs/accuracy.md), never faster
///   of the plan  `error` of the plan, either way, for every candidate
#pragma once

#include "scenario/capacity/capacity_plan.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

struct CandidateError {
  enum class Basis : std::uint8_t { of_the_plan, fitted, best_case };
  Basis basis = Basis::best_case;
  Ratio slower;  ///< share of the throughput that may be missing
  Ratio faster;  ///< and that may come on top
  Ratio energy;  ///< either way
  std::string source;
};
[[nodiscard]] const char* to_text(CandidateError::Basis);

/// The 95th percentile of the test errors of a fitted platform: the largest `error_p95` of its
/// provenance, where `plimsoll calibrate` writes it. Nothing where nothing judged it.
[[nodiscard]] std::optional<Ratio> test_error_of(const Platform& platform);

/// Of a candidate with this platform. What the plan sets on a processor was not fitted.
[[nodiscard]] CandidateError error_of(const CapacityPlan& plan, const CapacityCandidate& candidate,
                                      const Platform& platform);

}  // namespace plimsoll
