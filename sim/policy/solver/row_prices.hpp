/// The prices of the rows of a linear program, by Clp: what bounds by weak duality begin with.
#pragma once

#include "base/work.hpp"

#include <OsiClpSolverInterface.hpp>
#include <functional>
#include <vector>

namespace plimsoll {

/// By row, of the program that `load` fills, minimized. They are floats of a solver: a bound that is to
/// hold is worked out from them in integers. Counts an iteration as the entries of the program.
[[nodiscard]] std::vector<double> row_prices(
    const std::function<void(OsiClpSolverInterface&)>& load, const Work& work);

}  // namespace plimsoll
