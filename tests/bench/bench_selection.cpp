// Selects the checkpoints of chains of growing length: the dynamic program against the linear
// algorithm.
//
//   bench_selection [longest for the program [longest for the linear one]]
//
// Sizes are 1 to 100 from a fixed generator, and the engine's objective counts them as output,
// saved and gradient. Prints for each kind of chain CPU seconds by length, and the exponent of a
// power law fitted to the lengths that took more than a millisecond; both algorithms must select
// the same, else exit status 1.
#include "cpu_clock.hpp"
#include "policy/remat/selection/select.hpp"
#include "power_law.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

using namespace plimsoll;

namespace {

/// What a kind of chain adds to stage s of L. Forwards with workspaces need the general algorithm.
struct Kind {
  const char* name;
  std::int64_t most_forward = 0, most_backward = 0;  ///< workspaces, drawn from 1
  std::int64_t rising = 0, falling = 0;              ///< bytes of forward workspaces at the far end
};

constexpr Kind kKinds[] = {
    {"plain"},
    {"backward-workspaces", 0, 10'000},
    {"forward-workspaces", 10'000, 0},
    {"both-workspaces", 10'000, 10'000},
    {"large-forward-workspaces", 1'000'000'000, 0},
    {"rising-forward-workspaces", 100, 0, 1'000'000'000, 0},
    {"falling-forward-workspaces", 100, 0, 0, 1'000'000'000},
};

SelectionChain chain_of(std::int64_t stages, const Kind& kind) {
  std::mt19937_64 random(12345);
  const auto next = [&random](std::int64_t most) {
    return Bytes{1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most))};
  };
  ChainCosts costs;
  costs.input = costs.input_gradient = next(100);
  for (std::int64_t s = 0; s < stages; ++s) {
    StageCosts stage;
    stage.output = stage.saved = stage.gradient = next(100);
    if (kind.most_forward > 0)
      stage.keep_workspace = next(kind.most_forward) + Bytes{kind.rising / stages * s} +
                             Bytes{kind.falling / stages * (stages - s)};
    if (kind.most_backward > 0) stage.backward_workspace = next(kind.most_backward);
    stage.bare_workspace = stage.keep_workspace;
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

bool compare(const Kind& kind, long longest_program, long longest_linear) {
  std::vector<std::pair<double, double>> program, linear;
  for (long n = 10; n <= longest_linear; n *= 10) {
    for (const long stages : {n, 3 * n}) {
      if (stages > longest_linear) break;
      const SelectionChain chain = chain_of(stages, kind);
      double seconds = 0;
      const Selection quick = timed(select_near_linear, chain, seconds);
      linear.emplace_back(static_cast<double>(stages), seconds);
      std::printf("%s n %ld linear_s %.3g", kind.name, stages, seconds);
      if (stages <= longest_program) {
        const Selection exact = timed(select_quadratic, chain, seconds);
        program.emplace_back(static_cast<double>(stages), seconds);
        std::printf(" program_s %.3g", seconds);
        if (quick != exact) return false;
      }
      std::printf("\n");
    }
  }
  std::printf("%s exponent linear %.3g program %.3g\n", kind.name, exponent(linear),
              exponent(program));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const long longest_program = bench::argument(argc, argv, 1, 10'000);
  const long longest_linear = bench::argument(argc, argv, 2, 1'000'000);
  const bool equal = std::ranges::all_of(
      kKinds, [&](const Kind& kind) { return compare(kind, longest_program, longest_linear); });
  return equal ? 0 : 1;
}
