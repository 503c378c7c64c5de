/// What both forms of POET's program are asked.
#pragma once

#include "policy/hybrid/paging/paging_parameters.hpp"

#include <optional>
#include <string>

namespace plimsoll {

struct PoetParameters : PagingParameters {
  std::optional<Located<Ratio>> runtime_factor;
  std::int64_t nodes = 200;
  bool published = false;
  std::optional<Located<std::string>> counted_twice;
};

/// The published program (published_program.hpp), and its plan with copies that block.
[[nodiscard]] Planned plan_published_poet(const Problem& problem, const PoetParameters& parameters);

/// The program of staged plans with copies (policy/remat/graph/program/staged_program.hpp), least in
/// energy, and its plan, whose copies overlap with what else happens. The time that copies take counts
/// in full towards the limit.
[[nodiscard]] Planned plan_corrected_poet(const Problem& problem, const PoetParameters& parameters);

}  // namespace plimsoll
