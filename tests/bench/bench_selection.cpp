// Selects the checkpoints of chains of growing length: the dynamic program against the linear
// algorithm.
//
//   bench_selection [longest for the program [longest for the linear one]]
//
// Sizes are 1 to 100 from a fixed generator, and the engine's objective counts them as output,
// saved and gradient; `workspaces` adds forward workspaces of up to 10,000, so that the linear
// algorithm has to bisect. Prints CPU seconds by length, and the exponent of a power law fitted to
// the lengths that took more than a millisecond; both must select the same, else exit status 1.
#include "cpu_clock.hpp"
#include "policy/remat/select.hpp"
#include "power_law.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using namespace plimsoll;

namespace {

SelectionChain chain_of(std::int64_t stages, bool workspaces) {
  std::int64_t x = 12345;
  const auto next = [&x](std::int64_t most) {
    x = (1103515245 * x + 12345) % (std::int64_t{1} << 31);
    return Bytes{1 + x / 65536 % most};
  };
  ChainCosts costs;
  costs.input = costs.input_gradient = next(100);
  for (std::int64_t s = 0; s < stages; ++s) {
    StageCosts stage;
    stage.output = stage.saved = stage.gradient = next(100);
    if (workspaces) stage.keep_workspace = stage.bare_workspace = next(10'000);
    costs.stages.push_back(stage);
  }
  return engine_chain(costs);
}

/// Of the points that took long enough to be told from noise.
double exponent(std::vector<std::pair<double, double>> points) {
  std::erase_if(points, [](const auto& point) { return point.second < 1e-3; });
  return bench::exponent(points);
}

template <class Select>
Selection timed(Select select, const SelectionChain& chain, double& seconds) {
  const double begin = bench::cpu_seconds();
  Selection selection = select(chain);
  seconds = bench::cpu_seconds() - begin;
  return selection;
}

bool compare(bool workspaces, long longest_program, long longest_linear) {
  const std::string what = workspaces ? "workspaces" : "plain";
  std::vector<std::pair<double, double>> program, linear;
  for (long n = 10; n <= longest_linear; n *= 10) {
    for (const long stages : {n, 3 * n}) {
      if (stages > longest_linear) break;
      const SelectionChain chain = chain_of(stages, workspaces);
      double seconds = 0;
      const Selection quick = timed(select_near_linear, chain, seconds);
      linear.emplace_back(static_cast<double>(stages), seconds);
      std::printf("%s n %ld linear_s %.3g", what.c_str(), stages, seconds);
      if (stages <= longest_program) {
        const Selection exact = timed(select_quadratic, chain, seconds);
        program.emplace_back(static_cast<double>(stages), seconds);
        std::printf(" program_s %.3g", seconds);
        if (quick != exact) return false;
      }
      std::printf("\n");
    }
  }
  std::printf("%s exponent linear %.3g program %.3g\n", what.c_str(), exponent(linear),
              exponent(program));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const long longest_program = bench::argument(argc, argv, 1, 10'000);
  const long longest_linear = bench::argument(argc, argv, 2, 1'000'000);
  return compare(false, longest_program, longest_linear) &&
                 compare(true, longest_program, longest_linear)
             ? 0
             : 1;
}
