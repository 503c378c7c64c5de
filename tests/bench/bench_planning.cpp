// Planning time against the length of the chain, for every policy of one processor but
// remat/blocks, for a chain has no blocks: docs/figures/planning-times makes docs/planning-times.md
// of it.
//
//   bench_planning table|json [SECONDS A POINT [POLICY...]]     60 s, all policies
//
// Random chains of 10 to 10,000 stages: forwards of 1 to 20 ms, backwards twice that, outputs of 1
// to 10 MB, up to 30 MB more saved, in half the memory that all stages save, over a link that
// copies 2 GB/s each way, about as much as a stage saves in a stage's time. Policies have the
// parameters that they have by default, claims are part of planning. Each point is a process of its
// own that may take SECONDS of CPU time; what passes them is not asked about longer chains. Plans
// are made for a tenth of a second, or once, and their mean counts. The exponent is the slope of
// log(seconds) over log(stages), fitted by least squares to the longest chain that was planned and
// those down to a tenth of it.
#include "cpu_clock.hpp"
#include "policy/interface/policy.hpp"
#include "power_law.hpp"
#include "property/random_chains.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kStages[] = {10, 30, 100, 300, 1000, 3000, 10'000};

/// Variants beside the parameters that each policy has by default.
constexpr const char* kVariants[] = {"{name: remat/rotor, slots: exact}",
                                     "{name: remat/select-dp, objective: static}"};

struct Instance {
  Platform platform;
  Workload workload;
};

Instance instance(std::int64_t stages) {
  test::Dice dice(1);
  std::string chain = "workload: chain\ninput: 1 MB\nchain:\n";
  std::int64_t saved_by_all = 0;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t forward = dice(1'000'000, 20'000'000), output = dice(1'000, 10'000),
                       saved = output + dice(0, 30'000);
    saved_by_all += saved;
    chain += fmt::format(
        "  - {{name: s{}, forward: {} ns, backward: {} ns, output: {} kB, saved: {} kB}}\n", i,
        forward, 2 * forward, output, saved);
  }
  test::OneGpu gpu;
  gpu.capacity = saved_by_all * 1000 / 2;
  gpu.bandwidth_out = gpu.bandwidth_in = 2'000'000'000;
  return {test::one_gpu(gpu), build(read_workload(parse_document(chain, "chain.yaml")))};
}

BoundPolicy bound_policy(const std::string& policy) {
  Diagnostics diagnostics;
  auto bound = bind_policy(parse_document(policy, "policy"), diagnostics);
  diagnostics.throw_if_errors();
  return *bound;
}

constexpr double kEnough = 0.1;  ///< seconds, beside which the clock's steps are small

/// {seconds, outcome, message}: ok, infeasible, or refused with the reason.
Json plan(const BoundPolicy& policy, const Instance& it) {
  const Topology topology(it.platform);
  const ChainView view = chain_view(it.workload);
  const Problem problem{it.workload, view, it.platform, topology};
  bool found = false;
  double seconds = 0;
  int runs = 0;
  try {
    for (const double start = bench::cpu_seconds(); seconds < kEnough; ++runs) {
      found = std::holds_alternative<Plan>(policy.plan(problem));
      seconds = bench::cpu_seconds() - start;
    }
  } catch (const InputError& error) {
    return {{"outcome", "refused"}, {"message", error.diagnostics().front().message}};
  }
  return {{"outcome", found ? "ok" : "infeasible"}, {"seconds", seconds / runs}};
}

/// What a child with a limit on its CPU time writes, or that it passed the limit.
Json plan_apart(const BoundPolicy& policy, const Instance& it, rlim_t limit) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    // Beside what the parent has used, which a child does not inherit.
    const rlimit cpu{limit, limit};
    setrlimit(RLIMIT_CPU, &cpu);
    const std::string answer = plan(policy, it).dump();
    const bool written = write(ends[1], answer.data(), answer.size()) > 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGXCPU))
    return {{"outcome", "too long"}};
  if (answer.empty()) throw std::runtime_error(policy.name + ": planning failed");
  return Json::parse(answer);
}

/// Nothing where fewer than three chains were planned, or a longer one in less time: what took most
/// of it was not asked there, or refused.
std::optional<double> exponent(const Json& points) {
  std::vector<std::pair<double, double>> last_decade;
  const auto seconds_of = [](const auto& it) { return it.second; };
  double longest = 0;
  for (const Json& point : points)
    if (point.contains("seconds")) longest = std::max(longest, point.at("stages").get<double>());
  for (const Json& point : points) {
    const double stages = point.at("stages");
    if (point.contains("seconds") && stages * 10 >= longest)
      last_decade.emplace_back(stages, point.at("seconds").get<double>());
  }
  if (last_decade.size() < 3 || !std::ranges::is_sorted(last_decade, {}, seconds_of))
    return std::nullopt;
  return bench::exponent(last_decade);
}

Json measure(const std::string& text, const std::vector<Instance>& instances, rlim_t limit) {
  const BoundPolicy policy = bound_policy(text);
  Json points = Json::array();
  for (std::size_t i = 0; i < instances.size(); ++i) {
    Json point = plan_apart(policy, instances[i], limit);
    point["stages"] = kStages[i];
    points.push_back(point);
    if (point.at("outcome") == "too long") break;
  }
  Json row{
      {"policy", text}, {"complexity", find_policy(policy.name)->complexity}, {"points", points}};
  if (const auto fitted = exponent(points)) row["exponent"] = *fitted;
  return row;
}

void print_row(const Json& row) {
  fmt::print("{:<44}", row.at("policy").get<std::string>());
  for (const Json& point : row.at("points"))
    if (point.contains("seconds"))
      fmt::print(" {:>9.2g}", point.at("seconds").get<double>());
    else
      fmt::print(" {:>9}", point.at("outcome").get<std::string>());
  if (row.contains("exponent")) fmt::print("   ^ {:.2f}", row.at("exponent").get<double>());
  fmt::print("\n");
  std::fflush(stdout);
}

std::vector<std::string> chosen(int argc, char** argv) {
  std::vector<std::string> texts(argv + std::min(argc, 3), argv + argc);
  if (!texts.empty()) return texts;
  for (const PolicyInfo& it : policies())
    if (!it.name.starts_with("pipeline/") && it.name != "remat/blocks") texts.push_back(it.name);
  texts.insert(texts.end(), std::begin(kVariants), std::end(kVariants));
  std::ranges::sort(texts, {}, [](const std::string& text) {
    return bound_policy(text).name + (text.starts_with('{') ? " " : "");
  });
  return texts;
}

int run(int argc, char** argv) {
  const std::string form = argc > 1 ? argv[1] : "";
  const long limit = bench::argument(argc, argv, 2, 60);
  if ((form != "table" && form != "json") || limit < 1) {
    std::cerr << "usage: bench_planning table|json [SECONDS A POINT [POLICY...]]\n";
    return 2;
  }
  std::vector<Instance> instances;
  for (const std::int64_t stages : kStages) instances.push_back(instance(stages));
  Json rows = Json::array();
  for (const std::string& text : chosen(argc, argv)) {
    rows.push_back(measure(text, instances, static_cast<rlim_t>(limit)));
    if (form == "table") print_row(rows.back());
  }
  const Json all{
      {"compiler", __VERSION__}, {"limit_s", limit}, {"stages", kStages}, {"policies", rows}};
  if (form == "json") std::cout << all.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    return plimsoll::run(argc, argv);
  } catch (const plimsoll::InputError& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
