#include "workload/workload_file.hpp"

#include "base/repeat.hpp"
#include "workload/step/layers_workload.hpp"

namespace plimsoll {
namespace {

/// With repeats: a million stages of six values, about 1.5 GB while they are read.
constexpr std::size_t kMostValues = 9'000'000;

template <class T>
WorkloadSource read_as(const Format<T>& format, const Node& node, Diagnostics& diagnostics) {
  std::optional<T> spec = format.read(node, diagnostics);
  diagnostics.throw_if_errors();
  return std::move(*spec);
}

std::string form_of(const WorkloadSource& source) {
  if (std::holds_alternative<ChainSpec>(source)) return "chain";
  if (std::holds_alternative<ComputeGraphSpec>(source)) return "compute graph";
  return std::holds_alternative<GraphSpec>(source) ? "graph" : "profile";
}

/// Bytes that are given follow no layers, shapes or types.
void check_training(const Location& where, const std::string& form, const WorkloadSource& source,
                    const WorkloadOptions& options) {
  if (!states_of(optimizer_of(source, options)))
    refuse(where,
           "the state of `adam-8bit`, `adamw-8bit`, `adafactor` and `muon` follows from the shapes "
           "of parameters, which a " +
               form + " does not give; expected another optimizer");
  if (options.trained || options.trained_from)
    refuse(where, "a " + form + " takes no `trained` or `trained_from`: it has no layers");
  if (options.master_weights)
    refuse(where, "a " + form + " takes no `master_weights`: its bytes are given");
  if (options.autocast) refuse(where, "a " + form + " takes no `autocast`: its bytes are given");
  if (options.fuses_optimizer)
    refuse(*options.fuses_optimizer,
           "a " + form + " takes no `fused_optimizer`: its times are given");
  if (options.fuses_accumulation)
    refuse(*options.fuses_accumulation,
           "a " + form + " takes no `fused_accumulation`: its times are given");
  if (options.clips_gradients)
    refuse(*options.clips_gradients,
           "a " + form + " takes no `clip_gradients`: its times are given");
}

/// What tells of an update needs one.
void check_without_optimizer(const WorkloadOptions& options) {
  if (options.clips_gradients)
    refuse(*options.clips_gradients,
           "`clip_gradients` comes before an update; expected an `optimizer` beside it");
  if (options.fuses_optimizer)
    refuse(*options.fuses_optimizer,
           "`fused_optimizer` makes an update one kernel; expected an `optimizer` beside it");
}

/// Chains, graphs and profiles have neither layers nor a loss.
void check_source_options(const WorkloadSource& source, const WorkloadOptions& options) {
  if (!options.buffers.empty() && !std::holds_alternative<OnnxSpec>(source))
    refuse(options.buffers.front().where, "only an ONNX file has `buffers`");
  const Location& where = place_of(source);
  if (options.loss_dtype && !std::holds_alternative<LayersSpec>(source))
    refuse(options.loss_dtype->where, "only a network of layers takes `loss_dtype`");
  if (options.state_dtype && !std::holds_alternative<LayersSpec>(source))
    refuse(options.state_dtype->where, "only a network of layers takes `state_dtype`");
  if (options.lora && !std::holds_alternative<LayersSpec>(source))
    refuse(options.lora->rank.where, "only a network of layers takes `lora`");
  if (options.bits && !std::holds_alternative<LayersSpec>(source))
    refuse(options.bits->where, "only a network of layers takes `bits`");
  if (options.fp8 && !std::holds_alternative<LayersSpec>(source))
    refuse(options.fp8->where, "only a network of layers takes `fp8`");
  if (options.framework && !std::holds_alternative<LayersSpec>(source))
    refuse(options.framework->where,
           "only a network of layers has a `framework`: all else says what its operators are");
  if (std::holds_alternative<LayersSpec>(source) || std::holds_alternative<OnnxSpec>(source)) {
    const Optimizer optimizer = optimizer_of(source, options);
    if (optimizer == Optimizer::none) check_without_optimizer(options);
    if (options.fuses_accumulation && !options.master_weights)
      refuse(
          *options.fuses_accumulation,
          "`fused_accumulation` adds to gradients in fp32 beside parameters in 16 bits; expected "
          "`master_weights: true` beside it");
    if (optimizer == Optimizer::muon && options.fuses_optimizer)
      refuse(*options.fuses_optimizer,
             "`optimizer: muon` multiplies matrices; no `fused_optimizer` makes it one kernel");
    return;
  }
  const std::string form = form_of(source);
  check_training(where, form, source, options);
  if (options.optimizer.value_or(Optimizer::none) != Optimizer::none && form == "compute graph")
    refuse(where, "a compute graph takes no `optimizer`: its operators are all that runs");
  if (options.split_backward && form != "chain")
    refuse(where, "a " + form + " cannot split its backward; a chain and a network can");
  if (options.loss) refuse(where, "a " + form + " takes no `loss`: its loss costs nothing");
  if (!options.with.empty())
    refuse(options.with.front().first.where, "a " + form + " takes no `with`: it has no numbers");
}

/// The host, as an operator that reads nothing: it comes after all others of its processor.
void add_step_overhead(Workload& workload, const WorkloadSource& source,
                       const WorkloadOptions& options) {
  std::optional<Time> time = options.step_overhead;
  if (const auto* chain = std::get_if<ChainSpec>(&source); chain != nullptr && !time)
    time = chain->step_overhead;
  if (time.value_or(Time{}) == Time{}) return;
  Operator& host = workload.operators.emplace_back();
  host.name = "step overhead";
  host.phase = Phase::optimizer;
  host.given_time = time;
}

}  // namespace

WorkloadSource read_workload(const Node& node) {
  Diagnostics diagnostics;
  Node expanded = node;
  expand_repeats(expanded, {.nodes = kMostValues}, diagnostics);
  diagnostics.throw_if_errors();
  const auto has = [&](const char* key) { return expanded.find(key) != nullptr; };
  if (!expanded.is_mapping() ||
      (!has("chain") && !has("graph") && !has("layers") && !has("profile")))
    refuse(node.where(),
           "expected a workload: a mapping with `layers`, `chain`, `graph` or `profile`, found " +
               (expanded.is_mapping() ? "none of them" : node.describe()));
  if (has("chain")) return read_as(chain_format(), expanded, diagnostics);
  if (is_compute_graph(expanded)) return read_as(compute_graph_format(), expanded, diagnostics);
  if (has("graph")) return read_as(graph_format(), expanded, diagnostics);
  if (has("profile") && !has("layers")) return read_as(profile_format(), expanded, diagnostics);
  return read_as(layers_format(), expanded, diagnostics);
}

const std::string& name_of(const WorkloadSource& source) {
  return std::visit([](const auto& spec) -> const std::string& { return spec.name; }, source);
}

const Location& place_of(const WorkloadSource& source) {
  return std::visit([](const auto& spec) -> const Location& { return spec.where; }, source);
}

std::optional<std::string> recorded_of(const WorkloadSource& source) {
  if (const auto* profile = std::get_if<ProfileSpec>(&source)) return profile->recorded;
  if (const auto* graph = std::get_if<GraphSpec>(&source)) return graph->recorded;
  return std::nullopt;
}

std::int64_t default_batch(const WorkloadSource& source) {
  return std::visit([](const auto& spec) { return spec.batch.value_or(1); }, source);
}

Optimizer optimizer_of(const WorkloadSource& source, const WorkloadOptions& options) {
  return std::visit(
      [&](const auto& spec) {
        if constexpr (requires { spec.optimizer; })
          return options.optimizer.value_or(spec.optimizer.value_or(Optimizer::none));
        else
          return options.optimizer.value_or(Optimizer::none);
      },
      source);
}

Workload build(const WorkloadSource& source, const WorkloadOptions& options) {
  check_source_options(source, options);
  try {
    Workload workload = std::visit([&](const auto& spec) { return build(spec, options); }, source);
    add_step_overhead(workload, source, options);
    return workload;
  } catch (const QuantityOverflow&) {
    refuse(place_of(source),
           "the sizes of workload `" + name_of(source) + "` add up to more than can be counted");
  }
}

std::string workload_schema() {
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.parts = {layers_format().shape, chain_format().shape, graph_format().shape,
                 compute_graph_format().shape, profile_format().shape};
  return json_schema(shape, "Plimsoll workload");
}

}  // namespace plimsoll
