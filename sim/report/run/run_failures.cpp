#include "report/run/run_failures.hpp"

#include "base/dense_id.hpp"
#include "report/run/run_details.hpp"
#include "report/text/text_table.hpp"
#include "scenario/run/failure_words.hpp"
#include "scenario/run/mesh_remedies.hpp"
#include "scenario/run/remedies.hpp"
#include "scenario/run/step_needs.hpp"
#include "scenario/run/step_of_rank.hpp"
#include "workload/sharding/away_step.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostWaits = 20;
/// Of settings of one kind that are told.
constexpr std::size_t kMostSettings = 4;

class Explanation {
 public:
  Explanation(const Scenario& scenario, const RunResult& result, std::span<const RunResult> all,
              const Style& style)
      : scenario_(scenario), result_(result), all_(all), style_(style) {}

  std::string run() {
    if (result_.infeasible) tell_infeasible(*result_.infeasible);
    if (result_.metrics.status == RunStatus::deadlock)
      tell_deadlock();
    else if (result_.oom)
      tell_oom(*result_.oom);
    return std::move(out_);
  }

 private:
  void headline(const std::string& text) {
    const std::string label = label_of(result_);
    out_ += style_(Paint::bad, label + ":") + ' ' +
            wrapped(text, kReportWidth, std::min<std::size_t>(width_of(label) + 2, 40)) + '\n';
  }
  void item(const std::string& text) { out_ += "  - " + wrapped(text, kReportWidth, 4) + '\n'; }

  void tell_infeasible(const Infeasible& infeasible) {
    headline(fmt::format("no plan: {}", infeasible.why));
    if (infeasible.smallest_budget.is_unlimited()) return;
    item(smallest_budget_in_words(infeasible, scenario_.platform[infeasible.memory].name));
  }

  static std::string request(const OutOfMemory& oom) {
    std::string text = request_in_words(oom);
    if (oom.cache) text += cache_text(*oom.cache);
    if (oom.cache && oom.asked <= oom.largest_free_block)
      text += "; of the device it takes at least 20 MiB for a tensor above 1 MiB, 2 MiB for others";
    return text;
  }

  static std::string cache_text(const CacheAtRefusal& cache) {
    std::string text = fmt::format("; its allocator holds {} in {}", to_text(cache.reserved),
                                   counted(cache.segments, "segment"));
    if (cache.with_free > 0)
      text += fmt::format(", of which {} are free in pieces of at most {}, in {} kept by {} in use",
                          to_text(cache.free), to_text(cache.largest_free),
                          counted(cache.with_free, "segment"), counted(cache.keeping, "block"));
    return text;
  }

  void tell_oom(const OutOfMemory& oom) {
    headline("out of memory: " + request(oom));
    if (oom.placement)
      tell_placement(*oom.placement, oom.capacity);
    else
      tell_residents(oom);
    if (oom.layout) tell_layout(*oom.layout);
    tell_what_to_try(oom);
  }

  void tell_residents(const OutOfMemory& oom) {
    std::vector<std::string> classes;
    for (std::size_t c = 0; c < kTensorClasses; ++c)
      if (oom.by_class[c] > Bytes{})
        classes.push_back(
            fmt::format("{} {}", to_text(static_cast<TensorClass>(c)), to_text(oom.by_class[c])));
    if (classes.empty()) return;
    out_ += "  " +
            wrapped(fmt::format("it holds {}: {}", counted(oom.residents, "tensor"),
                                fmt::join(classes, ", ")),
                    kReportWidth, 2) +
            '\n';
    TextTable table({{"largest tensors"}, {"class"}, {"size", Column::Align::right}});
    for (std::size_t r = 0; r < std::min<std::size_t>(oom.largest.size(), 5); ++r) {
      const Resident& resident = oom.largest[r];
      table.add({{resident.tensor}, {to_text(resident.tensor_class)}, {to_text(resident.bytes)}});
    }
    out_ += '\n' + table.text(style_) + '\n';
  }

  void tell_placement(const PlacementAtRefusal& placement, Bytes capacity) {
    item(
        fmt::format("at one time {} are alive; `{}` places them up to {}; no placement ends below "
                    "{}",
                    to_text(placement.load), placement.method, to_text(placement.end),
                    to_text(placement.lower_bound)));
    if (placement.lower_bound <= capacity && placement.method != "exact")
      item("another method may fit: `allocator: {static: {method: exact}}`");
    out_ += '\n';
  }

  void tell_layout(const LayoutAtRefusal& layout) {
    out_ += "  Where its memory is:\n";
    item(
        fmt::format("requested {}, allocated {}, held {}; beyond what is requested {} are "
                    "rounding, {} tails of blocks that were not split, {} holes",
                    to_text(layout.requested), to_text(layout.allocated), to_text(layout.reserved),
                    to_text(layout.rounding), to_text(layout.tails), to_text(layout.holes)));
    for (const KeptSegment& segment : layout.kept) {
      const std::size_t others = segment.blocks - segment.tensors.size();
      item(fmt::format("segment {} ({}): {} free, in pieces of at most {}, kept by {}{}",
                       segment.number, to_text(segment.size), to_text(segment.free),
                       to_text(segment.largest_free), fmt::join(segment.tensors, ", "),
                       others > 0 ? fmt::format(" and {} more", others) : ""));
    }
    if (layout.cut_segments > layout.kept.size())
      item(fmt::format("and {} more that are partly free",
                       layout.cut_segments - layout.kept.size()));
    out_ += '\n';
  }

  /// Only what is certain or was tried. How a pipeline spreads its parameters is the plan's business,
  /// so advice about one memory is given where one processor runs.
  void tell_what_to_try(const OutOfMemory& oom) {
    const std::size_t used = processors_used();
    const bool is_home =
        std::ranges::any_of(scenario_.platform.processors, [&](const Processor& p) {
          return scenario_.platform[p.memory].name == oom.memory && !only_updates(p);
        });
    out_ += "  What to try:\n";
    if (!is_home) {
      item(fmt::format("a larger `memories.{}.capacity`, or a policy that keeps less",
                       key_of(oom.memory)));
    } else if (used > 1) {
      if (result_.policy.starts_with("pipeline/")) advise_pipeline(oom);
      tell_allocators(remedies_of(scenario_, result_, all_).allocators);
    } else {
      advise_single(oom);
    }
    if (is_home)
      tell_mesh(result_.mesh_remedies ? *result_.mesh_remedies
                                      : mesh_remedies_of(scenario_, result_));
    if (is_home && !is_full_of_state(oom)) advise_batch();
  }

  /// The sizes of abstract workloads are given, whatever the batch.
  [[nodiscard]] bool states_samples() const {
    return result_.workload_as_run.macs > 0 && states_batch(scenario_);
  }

  /// Whether what stays from before the step until after it, whatever the batch, is more than there is.
  [[nodiscard]] bool is_full_of_state(const OutOfMemory& oom) const {
    const MemoryId memory = *scenario_.platform.find_memory(oom.memory);
    Bytes state;
    for (const BufferId id : result_.plan.initial) {
      const Buffer& buffer = result_.plan[id];
      const Tensor& tensor = result_.workload_as_run[buffer.tensor];
      const bool is_state = tensor.tensor_class == TensorClass::parameter ||
                            tensor.tensor_class == TensorClass::gradient ||
                            tensor.tensor_class == TensorClass::optimizer_state;
      if (buffer.memory == memory && is_state) state += tensor.bytes;
    }
    return state > oom.capacity;
  }

  /// On a mesh smaller microbatches are tried.
  void advise_pipeline(const OutOfMemory& oom) {
    const bool is_full = is_full_of_state(oom);
    const Workload& workload = result_.workload_as_run;
    std::vector<std::int64_t> more;
    if (!scenario_.parallel && !is_full && states_samples())
      for (std::int64_t n = workload.microbatches + 1; n <= workload.batch; ++n)
        if (workload.batch % n == 0) more.push_back(n);
    const std::string cuts = "other cuts (`partition`)";
    if (more.empty())
      item(cuts +
           (is_full ? ": parameters, gradients and optimizer state alone are too large" : ""));
    else
      item(fmt::format("smaller microbatches (`microbatches: {}`), or {}", in_words_of_choice(more),
                       cuts));
  }

  /// "8, 16 or 32".
  static std::string in_words_of_choice(std::span<const std::int64_t> numbers) {
    if (numbers.size() == 1) return fmt::format("{}", numbers.front());
    return fmt::format("{} or {}", fmt::join(numbers.first(numbers.size() - 1), ", "),
                       numbers.back());
  }

  /// Ranks and microbatches divide it.
  void advise_batch() {
    const Workload& workload = result_.workload_as_run;
    const std::int64_t step = std::max<std::int64_t>(workload.microbatches, 1);
    if (!states_samples() || workload.batch <= step) return;
    const std::int64_t most = workload.batch - step;
    item(fmt::format("a batch of at most {}{}", most,
                     step == 1     ? ""
                     : most > step ? fmt::format(", a multiple of {}", step)
                                   : ""));
  }

  /// By which the platform's file is told of a memory.
  [[nodiscard]] const std::string& key_of(const std::string& memory) const {
    return scenario_.platform[*scenario_.platform.find_memory(memory)].key();
  }

  /// Whether the plan runs updates there and nothing else.
  [[nodiscard]] bool only_updates(const Processor& processor) const {
    const auto only = streams_of_updates(result_.plan, result_.workload_as_run);
    for (std::size_t l = 0; l < only.size(); ++l)
      if (only[l] && scenario_.platform[result_.plan.lanes[l].processor].name == processor.name)
        return true;
    return false;
  }

  /// Whether operators that compute in `memory` also reach another one.
  [[nodiscard]] bool reaches_more(const std::string& memory) const {
    return std::ranges::any_of(scenario_.platform.processors, [&](const Processor& p) {
      return scenario_.platform[p.memory].name == memory && !p.reaches.empty();
    });
  }

  void advise_single(const OutOfMemory& oom) {
    const StepNeeds needs =
        needs_of(as_seen_here(result_.workload_as_run, scenario_.state.has_value()),
                 result_.plan.microbatches);
    if (needs.resident > oom.capacity) {
      const std::string what = fmt::format(
          "parameters, gradients, optimizer state and inputs alone take {}, more than "
          "the {} of {}",
          to_text(needs.resident), to_text(oom.capacity), oom.memory);
      const Remedies remedies = state_remedies_of(scenario_, result_);
      if (!remedies.states.empty())
        item(what);
      else if (reaches_more(oom.memory))
        item(what + ": of all policies only `offload/placement` lets them live elsewhere");
      else if (scenario_.parallel)
        item(what + ": no policy fits while the mesh is divided so");
      else
        item(what +
             ": no policy on one processor fits; take a larger memory, several processors "
             "(`pipeline/...`), or a lighter optimizer");
      tell_states(remedies);
      tell_failed(remedies);
      return;
    }
    if (needs.at_once > oom.capacity) {
      item(fmt::format(
          "{} needs {} at once, beside {} of parameters, gradients, optimizer state and "
          "inputs: neither offloading activations nor recomputation helps",
          needs.worst_name, to_text(needs.of_worst), to_text(needs.at_once - needs.of_worst)));
      const Remedies remedies = state_remedies_of(scenario_, result_);
      tell_states(remedies);
      tell_failed(remedies);
      return;
    }
    item(
        fmt::format("parameters, gradients, optimizer state and inputs take {}, the largest "
                    "operator ({}) needs {} beside them",
                    to_text(needs.resident), needs.largest_name, to_text(needs.largest_operator)));
    const Remedies remedies = remedies_of(scenario_, result_, all_);
    tell_allocators(remedies.allocators);
    if (remedies.with_all_of_memory)
      item(fmt::format("with all of {} as its `budget` it runs, tried: {} a step", oom.memory,
                       to_text(*remedies.with_all_of_memory)));
    tell_policies(remedies);
    tell_states(remedies);
    tell_failed(remedies);
  }

  void tell_allocators(const Remedies::Allocators& allocators) {
    if (allocators.tried == 0) return;
    item(allocators.run.empty()
             ? fmt::format("another allocator does not help: {} were tried with this plan",
                           allocators.tried)
             : fmt::format("this plan runs with another allocator, tried: {}",
                           fmt::join(allocators.run, "; ")));
  }

  void tell_mesh(const MeshRemedies& remedies) {
    for (const MeshRemedies::Change& it : remedies.run)
      item(fmt::format("`{}` runs on the same processors, tried: {} a step",
                       in_one_line(it.arguments), to_text(it.makespan)));
    if (!remedies.failed.empty())
      item("tried on the same processors, and did not run: " + some_of(remedies.failed));
    if (!remedies.skipped.empty())
      item("not tried, as that takes long: " + some_of(remedies.skipped));
  }

  /// The JSON has all.
  static std::string some_of(const std::vector<ChangeArguments>& changes) {
    std::vector<std::string> told;
    for (const ChangeArguments& it : changes)
      if (told.size() < kMostSettings) told.push_back(in_one_line(it));
    const std::string text = fmt::format("`{}`", fmt::join(told, "`; `"));
    const std::size_t more = changes.size() - told.size();
    return more > 0 ? fmt::format("{}; and {} more", text, more) : text;
  }

  void tell_states(const Remedies& remedies) {
    for (const Remedies::State& it : remedies.states)
      item(fmt::format("`state: {}` runs in the same memory, tried: {} a step", it.written,
                       to_text(it.makespan)));
  }

  void tell_policies(const Remedies& remedies) {
    for (const Remedies::Policy& it : remedies.policies)
      item(fmt::format("`--policy {}` runs in the same memory, tried: {} a step",
                       quoted(it.written), to_text(it.makespan)));
    if (!remedies.undecided.empty())
      item(fmt::format("not tried here, as planning takes long: {}",
                       fmt::join(remedies.undecided, "; ")));
  }

  void tell_failed(const Remedies& remedies) {
    std::vector<std::string> failed = remedies.failed;
    for (const std::string& state : remedies.failed_states)
      failed.push_back(fmt::format("`state: {}`", state));
    if (!failed.empty())
      item(fmt::format("tried in the same memory, and did not run: {}", fmt::join(failed, "; ")));
  }

  /// As a shell takes it.
  static std::string quoted(const std::string& policy) {
    return policy.starts_with('{') ? "'" + policy + "'" : policy;
  }

  std::size_t processors_used() const {
    std::vector<ProcessorId> used;
    for (const Lane& lane : result_.plan.lanes)
      if (lane.kind == Lane::Kind::stream && !only_updates(scenario_.platform[lane.processor]))
        used.push_back(lane.processor);
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return used.size();
  }

  void tell_deadlock() {
    headline("deadlock: these wait for each other, and nothing is under way that could end it");
    for (std::size_t w = 0; w < std::min(result_.cycle.size(), kMostWaits); ++w)
      item(result_.cycle[w]);
    if (result_.cycle.size() > kMostWaits)
      item(fmt::format("and {} more", result_.cycle.size() - kMostWaits));
    if (result_.oom) tell_memory_in_cycle(*result_.oom);
  }

  void tell_memory_in_cycle(const OutOfMemory& oom) {
    out_ += "  " + wrapped("Memory is part of it: " + request(oom), kReportWidth, 2) + '\n';
    tell_residents(oom);
    out_ += "  What to try:\n";
    item(
        fmt::format("a larger `memories.{}.capacity`, or a plan that asks for memory in another "
                    "order",
                    key_of(oom.memory)));
  }

  const Scenario& scenario_;
  const RunResult& result_;
  const std::span<const RunResult> all_;
  const Style& style_;
  std::string out_;
};

}  // namespace

std::string explain_failure(const Scenario& scenario, const RunResult& result,
                            std::span<const RunResult> all, const Style& style) {
  return Explanation(scenario, result, all, style).run();
}

}  // namespace plimsoll
