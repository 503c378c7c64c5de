/// Where energy is the objective, what nobody states must not count as nothing.
#pragma once

#include "base/diagnostic.hpp"
#include "policy/interface/policy.hpp"

#include <optional>
#include <string>

namespace plimsoll {

/// Throws InputError at `where` unless the energies of `policy`'s plans are known: of operators on
/// `processor` (its power, its energy per FLOP, or an energy of each operator) and, where there is a
/// storage, of copies both ways (a power or an energy per byte of the storage or of a link on the way;
/// 0 W is known). Precondition: a way leads there and back. O(operators).
void require_known_energies(const Problem& problem, ProcessorId processor,
                            std::optional<MemoryId> storage, const Location& where,
                            const std::string& policy);

}  // namespace plimsoll
