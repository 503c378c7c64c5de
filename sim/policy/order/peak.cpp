#include "plan/build/plan_builder.hpp"
#include "policy/claims/judged_claims.hpp"
#include "policy/interface/entry.hpp"
#include "policy/interface/registry.hpp"
#include "policy/order/beam_order.hpp"
#include "policy/order/exact_order.hpp"
#include "policy/order/order_bound.hpp"
#include "policy/order/order_state.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

enum class OrderMethod : std::uint8_t { exact, beam };

struct OrderPeakParameters : SingleProcessorParameters {
  std::optional<Located<OrderMethod>> method;
  std::int64_t width = 64;
};

/// For each direction in time, without `method`: some tenths of a second.
constexpr std::size_t kFewOrderStates = std::size_t{1} << 16;

class LeastPeak {
 public:
  LeastPeak(const Problem& problem, const OrderPeakParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        graph_(order_graph(problem.workload)),
        order_(graph_.given),
        given_(peak_of(graph_, order_)),
        peak_(given_),
        bound_(bound()) {}

  Plan run() {
    if (peak_ > bound_) search();
    const ProcessorId processor = processor_for(problem_, parameters_);
    const MemoryId memory = problem_.platform[processor].memory;
    PlanBuilder builder(problem_.workload, problem_.platform, parameters_.name);
    builder.reserve(graph_.operators, problem_.workload.tensors.size(),
                    problem_.workload.tensor_lists.size());
    const LaneId stream = builder.stream(processor);
    for (const std::uint32_t node : order_)
      if (node < graph_.operators) builder.compute(stream, OperatorId{node});
    Plan plan = builder.finish();
    claim_or_judge(plan, problem_, memory);
    plan.claims.optimal = peak_ == bound_;
    plan.bounds.peak = {{memory, graph_.resident + Bytes{bound_}}};
    plan.notes.push_back(note(problem_.platform[memory].name));
    return plan;
  }

 private:
  /// At the operators that need most, where all would take long.
  [[nodiscard]] std::int64_t bound() const {
    constexpr std::size_t kWorkOfBound = 200'000'000, kAtOnce = 64;
    const std::size_t most = kAtOnce * std::max<std::size_t>(1, kWorkOfBound / graph_.size());
    const auto needs = *needs_of(graph_, graph_.given);
    std::vector<std::uint32_t> places(graph_.nodes()), nodes;
    std::iota(places.begin(), places.end(), 0u);
    std::ranges::stable_sort(places, std::greater<>(),
                             [&](std::uint32_t place) { return needs[place]; });
    places.resize(std::min(places.size(), most));
    for (const std::uint32_t place : places) nodes.push_back(graph_.given[place]);
    return cut_bound(graph_, nodes, problem_.work);
  }

  void search() {
    search_beams();
    const bool is_asked = parameters_.method.has_value();
    if (peak_ == bound_ || (is_asked && parameters_.method->value == OrderMethod::beam)) return;
    if (graph_.nodes() <= kMostOrderNodes)
      search_exactly(is_asked);
    else if (is_asked)
      refuse(
          fmt::format("the best of {} operators and {} barriers between them is not known; {} are "
                      "taken at most",
                      graph_.operators, graph_.nodes() - graph_.operators, kMostOrderNodes));
  }

  /// Some graphs have few states when time runs backwards.
  void search_exactly(bool is_asked) {
    const OrderGraph back = reversed(graph_);
    for (const std::size_t states : {kFewOrderStates, kMostOrderStates})
      for (const bool is_back : {false, true}) {
        if (states == kMostOrderStates && !is_asked) return;
        ExactOrder exact =
            exact_order(is_back ? back : graph_, bound_, peak_, states, problem_.work);
        if (!exact.is_proven) continue;
        if (is_back) std::ranges::reverse(exact.order);
        if (!exact.order.empty()) take(exact.order);
        bound_ = peak_;
        return;
      }
    refuse(
        fmt::format("the best order of {} operators takes more than {} sets of those that have run",
                    graph_.operators, kMostOrderStates));
  }

  void search_beams() {
    const BeamOptions options{.width = static_cast<std::size_t>(parameters_.width)};
    if (const auto order = beam_order(graph_, bound_, peak_, options, problem_.work)) take(*order);
  }

  void take(const std::vector<std::uint32_t>& order) {
    order_ = order;
    peak_ = peak_of(graph_, order_);
  }

  [[noreturn]] void refuse(std::string why) const {
    plimsoll::refuse(parameters_.method->where, std::move(why), "take `method: beam`");
  }

  [[nodiscard]] std::string note(const std::string& memory) const {
    const auto all = [&](std::int64_t bytes) { return to_text(graph_.resident + Bytes{bytes}); };
    const std::string before =
        fmt::format("the order of the workload needs {} of {}", all(given_), memory);
    if (peak_ == given_)
      return before + (peak_ == bound_
                           ? ", and no order needs less"
                           : fmt::format(", and no better one was found; each needs {} at least",
                                         all(bound_)));
    return before + fmt::format(", this one {}; {}", all(peak_),
                                peak_ == bound_
                                    ? "no order needs less"
                                    : fmt::format("each needs {} at least", all(bound_)));
  }

  const Problem& problem_;
  const OrderPeakParameters& parameters_;
  const OrderGraph graph_;
  std::vector<std::uint32_t> order_;
  const std::int64_t given_;
  std::int64_t peak_, bound_;  ///< beside what is resident
};

Planned plan_order_peak(const Problem& problem, const OrderPeakParameters& parameters) {
  return LeastPeak(problem, parameters).run();
}

}  // namespace

PolicyInfo order_peak_policy() {
  auto record = single_processor_record<OrderPeakParameters>("order/peak");
  record
      .optional(
          "method", &OrderPeakParameters::method,
          located(
              one_of<OrderMethod>({{"exact", OrderMethod::exact}, {"beam", OrderMethod::beam}})),
          "`exact`: the optimum, of up to about 25 operators, more where the bound proves it or "
          "few "
          "can run at a time; `beam`: a search, of any number; default: exact where that ends "
          "soon, else beam")
      .optional("width", &OrderPeakParameters::width, integer(1, 4096),
                "states that the widest beam holds of each number of operators; default 64");
  return make_policy<OrderPeakParameters>(
      {.name = "order/peak",
       .summary = "Runs every operator once, in the order of least peak memory.",
       .paper =
           "Steiner et al. 2023, \"MODeL: Memory Optimizations for Deep Learning\" (OLLA), ICML, "
           "arXiv:2210.12924: the same orders, found by dynamic programming over downsets and "
           "by beam search instead of an integer program",
       .assumes = "any workload of one processor, one microbatch; backwards come after their "
                  "forwards, updates as soon as their gradients are complete",
       .guarantees = "no more memory than the order of the workload; optimal where claims.optimal "
                     "says so, and then the bound is its peak. As long as `none`, where no host "
                     "holds the processor up",
       .complexity = "O(2^operators) exact; the search ends after 10^8 looks and 10^4 for each "
                     "operator"},
      record, plan_order_peak);
}

}  // namespace plimsoll
