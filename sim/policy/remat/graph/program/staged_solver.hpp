/// Solves the integer program of staged plans (staged_program.hpp) by Clp and CBC, on one thread,
/// with settings that depend on nothing.
///
/// The linear relaxation is solved first. Reruns that by their reduced cost would pass the time of a
/// known plan are left out, and the program is made again without them. On that come cuts, and a
/// branch and bound that looks for plans of less time than the known one. The solver's numbers are floats: its
/// bounds are trusted to a millionth, and rounded up to the next time that reruns can take. Of its
/// plans only the reruns are taken; what they need and take is worked out in integers.
#pragma once

#include "base/work.hpp"
#include "policy/remat/graph/program/staged_program.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct StagedRelaxation {
  bool is_impossible = false;   ///< no plan is within the room, even by fractions
  std::int64_t bound = 0;       ///< ps of reruns at least
  std::vector<double> columns;  ///< their values
};

/// The linear relaxation. O(entries) work an iteration of the simplex algorithm.
[[nodiscard]] StagedRelaxation relax_staged_program(const StagedProgram& program, const Work& work);

struct StagedOptimum {
  bool is_impossible = false;
  bool is_closed = false;  ///< the search tree was searched to its end
  std::int64_t bound = 0;  ///< ps of reruns at least, of every plan
  /// A plan faster than the known one, nearly within the room: to be judged.
  std::optional<std::vector<Rerun>> reruns = {};
};

/// For at most `nodes` of the search tree. `known`, ps of reruns, is that of a plan within the room.
/// With `copies` values return, and ps are what the groups have in their place.
[[nodiscard]] StagedOptimum solve_staged_program(const OperatorGraph& graph,
                                                 const RerunGroups& groups, std::int64_t room,
                                                 std::optional<std::int64_t> known, int nodes,
                                                 const Work& work,
                                                 const StagedCopies* copies = nullptr);

}  // namespace plimsoll
