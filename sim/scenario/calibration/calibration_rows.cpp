#include "scenario/calibration/calibration_rows.hpp"

#include "base/names_hint.hpp"
#include "base/wildcard.hpp"
#include "engine/wide.hpp"
#include "platform/core/without_limits.hpp"
#include "platform/file/platform_file.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/run.hpp"
#include "workload/network/layer_name.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr Signed128 kPicosecondsPerSecond = 1'000'000'000'000;
constexpr Signed128 kNanosamples = 1'000'000'000;

/// Of a mini-batch at that rate, rounded down.
Time step_time(const MeasurementSpec& spec, std::int64_t batch) {
  const Signed128 time =
      Signed128{batch} * kNanosamples * kPicosecondsPerSecond / spec.throughput->count();
  if (time >= Time::unlimited().count()) throw QuantityOverflow();
  return Time{static_cast<std::int64_t>(time)};
}

bool is_in(const Operator& op, Half half) {
  if (op.phase == Phase::optimizer) return false;
  return (op.phase == Phase::forward) == (half == Half::forward);
}

/// Sums the times of a profile by class.
ClassTimes times_of(const ProfileSpec& profile, Half half) {
  ClassTimes times;
  for (const RecordedOperator& op : profile.operators) {
    if (half == Half::backward && !op.backward) continue;
    std::optional<Time>& sum = times[static_cast<std::size_t>(op.operator_class)];
    sum = sum.value_or(Time{}) + (half == Half::forward ? op.forward : *op.backward).time;
  }
  return times;
}

class Reader {
 public:
  Reader(const CalibrationSpec& spec, const std::filesystem::path& folder)
      : spec_(spec), folder_(folder), search_(folder) {}

  MeasurementSet run() {
    platform_ = search_.read(spec_.platform.value, "platforms", spec_.platform.where);
    for (const auto* list : {&spec_.fit, &spec_.test})
      for (const MeasurementSpec& it : *list) guarded([&] { add(it, list == &spec_.test); });
    if (errors_.empty()) check_waits();
    if (!errors_.empty()) throw InputError(std::move(errors_));
    note_read(spec_.platform.value, "platforms");
    set_.start = set_.platform[set_.processor];
    if (spec_.like) begin_like(*spec_.like);
    if (spec_.kernels)
      set_.start.kernels = {static_cast<std::uint32_t>(spec_.kernels->tile), spec_.kernels->bias,
                            spec_.kernels->additions};
    return std::move(set_);
  }

 private:
  /// What several measurements find wrong with the platform is said once.
  void guarded(auto part) {
    try {
      part();
    } catch (const InputError& error) {
      for (const Diagnostic& it : error.diagnostics())
        if (std::ranges::find(errors_, it) == errors_.end()) errors_.push_back(it);
    }
  }

  /// A time that a profiler of layers took is told without its launches, which are in its waits.
  void check_waits() {
    std::array<bool, 2> is_told{};
    for (const Measurement& it : set_.measurements)
      for (const MeasuredPart& part : it.parts)
        if (part.waits && !it.is_test) is_told[static_cast<std::size_t>(*part.waits)] = true;
    for (const Measurement& it : set_.measurements)
      for (const MeasuredPart& part : it.parts)
        if (part.waits && !is_told[static_cast<std::size_t>(*part.waits)])
          guarded([&] {
            refuse(it.spec->where,
                   fmt::format("measurement `{}` times a {} layer by layer, and nothing tells how "
                               "long its profiler waits there; expected such a {} under `fit`",
                               it.spec->name, to_text(*part.waits), to_text(*part.waits)));
          });
  }

  void add(const MeasurementSpec& it, bool is_test) {
    note_workload(it.workload);
    Measurement measurement{&it, is_test, {}, {}};
    try {
      if (it.mix.empty()) add_shape(measurement, 1, {});
      for (const MixedShape& shape : it.mix) add_shape(measurement, shape.parts, shape.with);
      check_layers(measurement);
      add_parts(measurement);
    } catch (const QuantityOverflow&) {
      refuse(it.where,
             fmt::format("the numbers of measurement `{}` leave the range of 106 days", it.name));
    }
    set_.measurements.push_back(std::move(measurement));
  }

  void add_shape(Measurement& measurement, std::int64_t parts, const Node& with) {
    const MeasurementSpec& it = *measurement.spec;
    Scenario scenario = scenario_of(it, with);
    check(it, scenario);
    set_.platform = scenario.platform;
    set_.processor = processor();
    measurement.shapes.push_back(it.policy || scenario.workload_options.accumulate
                                     ? as_planned(it, std::move(scenario), parts)
                                     : as_built(scenario, parts));
  }

  static MeasuredShape as_built(const Scenario& scenario, std::int64_t parts) {
    MeasuredShape shape{parts, build(scenario.workload, scenario.workload_options), {}};
    for (std::uint32_t op = 0; op < shape.workload.operators.size(); ++op)
      shape.runs.push_back(OperatorId{op});
    return shape;
  }

  [[nodiscard]] MeasuredShape as_planned(const MeasurementSpec& it, Scenario scenario,
                                         std::int64_t parts) const {
    // Whether it fits is not asked: what was measured did.
    scenario.platform = without_limits(std::move(scenario.platform));
    RunResult run = run_policy(scenario, scenario.policies.front());
    const Location& where = it.policy ? it.policy->where() : it.where;
    if (run.infeasible)
      refuse(where, fmt::format("policy `{}` has no plan: {}", run.policy, run.infeasible->why));
    MeasuredShape shape{parts, std::move(run.workload_as_run), {}};
    for (const Step& step : run.plan.steps) {
      if (step.kind != StepKind::compute || run.plan[step.lane].processor != set_.processor)
        refuse(where, fmt::format("policy `{}` does more than compute on `{}`; expected one whose "
                                  "steps are sums of its operators",
                                  run.policy, set_.platform[set_.processor].name));
      shape.runs.push_back(step.op);
    }
    return shape;
  }

  void begin_like(const Located<std::string>& named) {
    Diagnostics diagnostics;
    const Platform platform = read_platform(search_.read(named.value, "platforms", named.where),
                                            diagnostics, resolver_of_extends());
    diagnostics.throw_if_errors();
    note_read(named.value, "platforms");
    const auto like = platform.find_processor(set_.start.name);
    if (!like)
      refuse(named.where, fmt::format("platform `{}` has no processor `{}` to begin with",
                                      named.value, set_.start.name));
    set_.start.launch_overhead = platform[*like].launch_overhead;
    for (std::size_t i = 0; i < kKernelKinds; ++i)
      set_.start.efficiency[i] =
          Efficiency(set_.start.efficiency[i].compute(), platform[*like].efficiency[i].bandwidth());
  }

  void note_read(const std::string& name, const std::string& kind) {
    if (auto path = search_.find(name, kind)) set_.read.push_back(std::move(*path));
  }

  void note_workload(const Node& workload) {
    if (workload.is_scalar()) note_read(workload.scalar(), "workloads");
    if (const Node* model = workload.find("model")) note_read(model->scalar(), "workloads");
    if (const Node* onnx = workload.find("onnx")) set_.read.push_back(folder_ / onnx->scalar());
  }

  /// With these numbers of the workload instead of its own; none: with its own.
  [[nodiscard]] Scenario scenario_of(const MeasurementSpec& it, const Node& with) const {
    Diagnostics diagnostics;
    Node workload = it.workload;
    if (workload.is_scalar()) {
      workload = parse_value("{}", it.where.origin);
      workload.set("model", it.workload, diagnostics);
    }
    for (const Node::Entry& number : with.entries())
      if (workload.is_mapping())
        workload.set("with." + number.key.scalar(), number.value, diagnostics);
    Node document = parse_value("{scenario: calibration, policy: none}", it.where.origin);
    if (it.policy) document.set("policy", *it.policy, diagnostics);
    document.set("platform", platform_, diagnostics);
    document.set("workload", workload, diagnostics);
    diagnostics.throw_if_errors();
    return read_scenario(document, folder_);
  }

  /// Times that are given have no coefficients.
  static void check(const MeasurementSpec& it, const Scenario& scenario) {
    if (!std::holds_alternative<LayersSpec>(scenario.workload) &&
        !std::holds_alternative<OnnxSpec>(scenario.workload))
      refuse(it.workload.where(),
             fmt::format("workload `{}` has times of its own, which no coefficient changes; "
                         "expected a network of layers, or an ONNX file",
                         scenario.workload_name));
    if (scenario.workload_options.accumulate && !it.is_step())
      refuse(it.workload.where(),
             "`accumulate` is of whole steps; expected `step` or `throughput` beside it");
    if (scenario.policies.size() != 1)
      refuse(it.policy->where(), "a step is run with one policy, found a list");
  }

  [[nodiscard]] ProcessorId processor() const {
    const auto& processors = set_.platform.processors;
    if (spec_.on) {
      if (const auto found = set_.platform.find_processor(spec_.on->value)) return *found;
      std::vector<std::string> names;
      for (const Processor& it : processors) names.push_back(it.name);
      refuse(spec_.on->where, fmt::format("the platform has no processor `{}`", spec_.on->value),
             hint_of_names(spec_.on->value, names));
    }
    if (processors.size() != 1)
      refuse(spec_.platform.where,
             fmt::format("platform `{}` has {} processors; expected `on`, which names one",
                         spec_.platform.value, processors.size()));
    return ProcessorId{0};
  }

  /// `layer` may be a pattern.
  static bool is_of_layer(const Operator& op, const std::string& layer) {
    return matches(layer, layer_of(op));
  }

  static bool is_of_any(const Operator& op, const std::vector<Located<std::string>>& layers) {
    return std::ranges::any_of(
        layers, [&](const Located<std::string>& layer) { return is_of_layer(op, layer.value); });
  }

  static void check_layers(const Measurement& measurement) {
    check_layers(measurement, measurement.spec->without);
    check_layers(measurement, measurement.spec->untimed);
    for (const auto& [layer, times] : measurement.spec->layers) check_layers(measurement, {layer});
  }

  static void check_layers(const Measurement& measurement,
                           const std::vector<Located<std::string>>& named) {
    const Workload& workload = measurement.shapes.front().workload;
    for (const Located<std::string>& layer : named) {
      if (std::ranges::any_of(workload.operators,
                              [&](const Operator& op) { return is_of_layer(op, layer.value); }))
        continue;
      std::vector<std::string> layers;
      for (std::size_t op = 0; op < workload.forwards; ++op)
        layers.emplace_back(layer_of(workload.operators[op]));
      refuse(layer.where,
             fmt::format("workload `{}` has no layer `{}`", workload.name, layer.value),
             hint_of_names(layer.value, layers));
    }
  }

  /// Of a step's runs those of which `wanted` is true, without the layers that the times leave out.
  static std::vector<std::vector<OperatorId>> operators_of(const Measurement& measurement,
                                                           auto wanted) {
    std::vector<std::vector<OperatorId>> by_shape;
    for (const MeasuredShape& shape : measurement.shapes) {
      std::vector<OperatorId>& operators = by_shape.emplace_back();
      for (const OperatorId id : shape.runs) {
        const Operator& op = shape.workload[id];
        if (wanted(op) && !is_of_any(op, measurement.spec->without)) operators.push_back(id);
      }
    }
    return by_shape;
  }

  void add_parts(Measurement& measurement) {
    const MeasurementSpec& it = *measurement.spec;
    const std::int64_t batch = measurement.shapes.front().workload.batch;
    if (it.profile) return add_profile(measurement, *it.profile);
    if (it.is_step()) {
      measurement.parts.push_back(
          {"", "", it.step ? *it.step : step_time(it, batch),
           operators_of(measurement, [](const Operator&) { return true; })});
      if (measurement.parts.back().operators.front().empty() && it.without.empty())
        refuse(it.where, fmt::format("workload `{}` has no operator that takes time",
                                     measurement.shapes.front().workload.name));
      if (measurement.parts.back().operators.front().empty())
        refuse(it.without.front().where, "`without` leaves nothing of the step to be timed");
      return;
    }
    for (const auto& [layer, times] : it.layers) {
      add_layer(measurement, layer, Half::forward, times.forward);
      add_layer(measurement, layer, Half::backward, times.backward);
    }
    add_half(measurement, Half::forward, it.forward, true);
    add_half(measurement, Half::backward, it.backward, true);
  }

  void add_profile(Measurement& measurement, const Located<std::string>& named) {
    const Node document = search_.read(named.value, "workloads", named.where);
    const WorkloadSource source = read_workload(document);
    const auto* profile = std::get_if<ProfileSpec>(&source);
    if (profile == nullptr) refuse(named.where, fmt::format("`{}` is no profile", named.value));
    const std::int64_t batch = measurement.shapes.front().workload.batch;
    if (profile->batch.value_or(1) != batch)
      refuse(named.where, fmt::format("profile `{}` was recorded with {} samples, and the workload "
                                      "beside it has {}",
                                      named.value, profile->batch.value_or(1), batch));
    note_read(named.value, "workloads");
    for (const Half half : {Half::forward, Half::backward})
      add_half(measurement, half, times_of(*profile, half), false);
    if (measurement.parts.empty())
      refuse(named.where, fmt::format("profile `{}` times no class of operators that the workload "
                                      "beside it has",
                                      named.value));
  }

  static const char* to_text(Half half) { return half == Half::forward ? "forward" : "backward"; }

  static void add_layer(Measurement& measurement, const Located<std::string>& layer, Half half,
                        const std::optional<Time>& time) {
    if (!time) return;
    MeasuredPart part{to_text(half), layer.value, *time,
                      operators_of(measurement, [&](const Operator& op) {
                        return is_in(op, half) && is_of_layer(op, layer.value);
                      })};
    if (part.operators.front().empty())
      refuse(layer.where, fmt::format("layer `{}` of workload `{}` has no {}", layer.value,
                                      measurement.shapes.front().workload.name, to_text(half)));
    add_part(measurement, half, std::move(part));
  }

  /// How often a profiler waits for it: a backward makes each of its products by a call.
  static std::size_t calls_of(const Operator& op) {
    const std::size_t products = std::size_t{op.kernel.of_input} + std::size_t{op.kernel.of_weight};
    return std::max<std::size_t>(products, 1);
  }

  static void add_part(Measurement& measurement, Half half, MeasuredPart part) {
    if (measurement.spec->layer_by_layer) {
      part.waits = half;
      for (const OperatorId op : part.operators.front())
        part.waiting += calls_of(measurement.shapes.front().workload[op]);
      if (half == Half::backward) add_additions(measurement, part);
    }
    measurement.parts.push_back(std::move(part));
  }

  /// Of backwards since the one that was timed last, that one's too.
  static void add_additions(const Measurement& measurement, MeasuredPart& part) {
    for (std::size_t s = 0; s < measurement.shapes.size(); ++s) {
      const Workload& workload = measurement.shapes[s].workload;
      std::vector<OperatorId>& before = part.added_before.emplace_back();
      for (const OperatorId op : part.operators[s])
        for (auto i = static_cast<std::size_t>(op); i > workload.forwards; --i) {
          before.push_back(static_cast<OperatorId>(i - 1));
          if (!is_of_any(workload.operators[i - 1], measurement.spec->untimed)) break;
        }
    }
  }

  /// Those of the class, without the layers that have no time of their own.
  static std::vector<OperatorId> timed(const Measurement& measurement, OperatorClass of_class,
                                       Half half) {
    return operators_of(measurement,
                        [&](const Operator& op) {
                          return op.operator_class == of_class && is_in(op, half) &&
                                 !is_of_any(op, measurement.spec->untimed);
                        })
        .front();
  }

  /// Adds forwards without a time of their own that run before one of these.
  static void add_untimed(const Measurement& measurement, std::vector<OperatorId>& operators) {
    const Workload& workload = measurement.shapes.front().workload;
    const std::vector<OperatorId> own = operators;
    for (const OperatorId op : own)
      for (auto i = static_cast<std::size_t>(op);
           i > 0 && is_of_any(workload.operators[i - 1], measurement.spec->untimed); --i)
        operators.push_back(static_cast<OperatorId>(i - 1));
  }

  static void add_half(Measurement& measurement, Half half, const ClassTimes& times,
                       bool must_exist) {
    for (std::size_t i = 0; i < kOperatorClasses; ++i) {
      if (!times[i] || *times[i] == Time{}) continue;
      const auto of_class = static_cast<OperatorClass>(i);
      MeasuredPart part{std::string(to_text(half)) + " " + plimsoll::to_text(of_class),
                        "",
                        *times[i],
                        {timed(measurement, of_class, half)}};
      if (!part.operators.front().empty()) {
        add_part(measurement, half, std::move(part));
        if (half == Half::forward)
          add_untimed(measurement, measurement.parts.back().operators.front());
      } else if (must_exist) {
        refuse(
            measurement.spec->where,
            fmt::format("the {} of workload `{}` has no operator of the class `{}`", to_text(half),
                        measurement.shapes.front().workload.name, plimsoll::to_text(of_class)));
      }
    }
  }

  const CalibrationSpec& spec_;
  const std::filesystem::path folder_;
  const SearchPath search_;
  Node platform_;
  std::vector<Diagnostic> errors_;
  MeasurementSet set_;
};

}  // namespace

MeasurementSet read_measurements(const CalibrationSpec& spec, const std::filesystem::path& folder) {
  return Reader(spec, folder).run();
}

}  // namespace plimsoll
