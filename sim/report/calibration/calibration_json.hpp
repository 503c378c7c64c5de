/// A calibration for programs.
#pragma once

#include "scenario/calibration/calibration.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/calibration/power_calibration.hpp"

#include <string>

namespace plimsoll {

/// One object: `calibration`, `platform`, `processor`; `coefficients` (`name`, `before`, `fitted`),
/// `rows` (`name`, `part`, `use`: `fit` or `test`, `source`, `measured_s`, `before_s`, `fitted_s`,
/// `error_before`, `error`), `errors` by use (`rows`, `mean_before`, `p95_before`, `mean`, `p95`).
/// Errors are fractions; the same bytes for the same calibration.
[[nodiscard]] std::string calibration_json(const Calibration& calibration);

/// Of powers likewise: `coefficients` in W and as a share; `rows` with `power_cap_w`, `measured_w`,
/// `fitted_w`, `error`, `growth_error` of the step against that under the largest cap; `errors` by
/// use (`rows`, `mean`); `least_energy_caps` (`name`, `use`, `measured_w`, `fitted_w`, `excess`).
[[nodiscard]] std::string power_calibration_json(const PowerCalibration& calibration);

/// Of whole runs: `coefficients` (`path`, `unit`, `start`, `from`, `to`, `fitted`), `tables` (`name`,
/// `source`, `errors` by use), `rows` (`table`, `name`, `use`, `measured_s`, `fitted_s`, `error`),
/// `errors` by use (`rows`, `mean`, `p95`). Where a platform was judged, that is `judged`, and
/// coefficients are left out.
[[nodiscard]] std::string cluster_calibration_json(const ClusterCalibration& calibration);

}  // namespace plimsoll
