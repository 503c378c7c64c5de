/// Collects the errors of several parts of an input, and of the files that it names, so that all
/// are reported at once.
#pragma once

#include "base/diagnostic.hpp"

namespace plimsoll {

/// Adds the errors of another input that this one names.
inline void take_errors(Diagnostics& diagnostics, const InputError& of_other) {
  for (const Diagnostic& d : of_other.diagnostics())
    if (d.severity == Severity::error) diagnostics.error(d.where, d.message, d.hint);
}

/// Runs `part`; what it throws keeps none of the other parts from being looked at.
void gather(Diagnostics& diagnostics, auto part) {
  try {
    part();
  } catch (const InputError& error) {
    take_errors(diagnostics, error);
  }
}

}  // namespace plimsoll
