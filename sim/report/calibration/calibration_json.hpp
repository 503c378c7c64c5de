/// A calibration for programs.
#pragma once

#include "scenario/calibration/calibration.hpp"

#include <string>

namespace plimsoll {

/// One object: `calibration`, `platform`, `processor`; `coefficients` (`name`, `before`, `fitted`),
/// `rows` (`name`, `part`, `use`: `fit` or `test`, `source`, `measured_s`, `before_s`, `fitted_s`,
/// `error_before`, `error`), `errors` by use (`rows`, `mean_before`, `p95_before`, `mean`, `p95`).
/// Errors are fractions; the same bytes for the same calibration.
[[nodiscard]] std::string calibration_json(const Calibration& calibration);

}  // namespace plimsoll
