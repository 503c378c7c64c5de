#include "scenario/document/scenario.hpp"

#include "base/gather.hpp"
#include "base/names_hint.hpp"
#include "platform/file/platform_file.hpp"
#include "platform/file/platform_layers.hpp"
#include "scenario/document/document_kind.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/document/search_path.hpp"
#include "workload/given/pipedream_profile.hpp"
#include "workload/onnx/onnx_file.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMaxRunIterations = 1'000'000;
constexpr std::int64_t kMaxAccumulated = 10'000;
constexpr std::size_t kMaxBuffers = 1'000;
constexpr std::size_t kMaxPolicies = 1000;

struct RunSpec {
  std::int64_t iterations = 1;
};

/// The file as written; its parts are read once it is known what they are.
struct ScenarioSpec {
  Location where;
  std::string name;
  Node platform, workload, policy;
  std::optional<Node> parallel, sharding, state, training;
  std::vector<std::pair<Located<std::string>, Node>> set;
  RunSpec run;
  std::optional<Expectation> expect;
};

/// A workload that refers to a file: {model: vgg19, batch: 128, ...}.
struct WorkloadReference {
  std::optional<Located<std::string>> model, onnx, profile;
  std::optional<std::int64_t> batch;
  std::optional<DType> dtype;
  std::optional<Optimizer> optimizer;
  std::optional<Trained> trained;
  std::optional<Located<std::string>> trained_from;
  std::optional<LowRank> lora;
  std::optional<Located<ElementBits>> bits;
  std::optional<Located<Fp8>> fp8;
  std::vector<Located<std::string>> buffers;
  std::optional<Located<Framework>> framework;
  std::optional<Located<bool>> master_weights;
  std::optional<Located<DType>> autocast;
  std::optional<Located<bool>> fused_optimizer;
  std::optional<Located<bool>> fused_accumulation;
  std::optional<Located<bool>> clip_gradients;
  std::optional<std::int64_t> accumulate;
  std::optional<Time> step_overhead;
  std::optional<Loss> loss;
  std::optional<Located<DType>> loss_dtype, state_dtype;
  NamedIntegers with;
};

Format<ScenarioSpec> scenario_format() {
  const auto run = Record<RunSpec>("run", "How often.")
                       .optional("iterations", &RunSpec::iterations, integer(1, kMaxRunIterations),
                                 "training steps in a row; default 1")
                       .format();
  return Record<ScenarioSpec>("scenario", "A what-if run.")
      .where(&ScenarioSpec::where)
      .required("scenario", &ScenarioSpec::name, name(), "its name")
      .required("platform", &ScenarioSpec::platform, raw(),
                "a name, a path, or a platform in place")
      .required("workload", &ScenarioSpec::workload, raw(),
                "{model: NAME, batch: N, ...}, a path, or a workload in place")
      .required("policy", &ScenarioSpec::policy, raw(), "a policy, or a list of them, to compare")
      .optional("parallel", &ScenarioSpec::parallel, raw(),
                "sizes of the axes of a mesh of processors: {data: 4, ...}")
      .optional("sharding", &ScenarioSpec::sharding, raw(),
                "what ranks of the data axis hold a part of: {stage: 2, ...}")
      .optional("state", &ScenarioSpec::state, raw(),
                "where parameters, gradients and the optimizer's state live: {optimizer: {memory: "
                "dram, on: cpu}, ...}")
      .optional(
          "set", &ScenarioSpec::set, map_of(raw()),
          "paths of platform, workload, policy, parallel, sharding, state or training, and their "
          "values")
      .optional("run", &ScenarioSpec::run, run, "iterations")
      .optional("training", &ScenarioSpec::training, raw(),
                "what becomes of the step over days: {steps: 20000, steps_per_day: 960, ...}")
      .optional("expect", &ScenarioSpec::expect, expectation_format(),
                "what a regression suite holds it to")
      .format();
}

/// Policies take patterns of such names.
Format<std::string> one_layer() {
  Format<std::string> one = name();
  one.read = [read = one.read](const Node& node, Diagnostics& diagnostics) {
    if (!node.is_scalar() || node.scalar().find('*') == std::string::npos)
      return read(node, diagnostics);
    diagnostics.error(node.where(), "found " + node.describe() +
                                        ", expected the name of one layer or block, not a pattern");
    return std::optional<std::string>{};
  };
  return one;
}

Format<WorkloadReference> workload_reference_format() {
  return Record<WorkloadReference>("workload", "A network from a file, and how it is trained.")
      .optional("model", &WorkloadReference::model, located(text()),
                "name or path of a workload file")
      .optional("onnx", &WorkloadReference::onnx, located(text()), "path of an ONNX file")
      .optional("profile", &WorkloadReference::profile, located(text()),
                "path of a measured profile, or of a graph.txt of PipeDream")
      .optional("batch", &WorkloadReference::batch, batch_format(),
                "samples of the whole mini-batch; default 1 (an ONNX file: its own)")
      .optional("dtype", &WorkloadReference::dtype, dtype_format(),
                "default fp32 (an ONNX file: its own)")
      .optional("optimizer", &WorkloadReference::optimizer, optimizer_format(), "default none")
      .optional("trained", &WorkloadReference::trained, trained_format(),
                "of layers that do not say it themselves; default all")
      .optional("trained_from", &WorkloadReference::trained_from, located(one_layer()),
                "the first layer that is trained; default the first of all")
      .optional("lora", &WorkloadReference::lora, lora_format(),
                "low-rank adapters beside frozen linear layers")
      .optional("bits", &WorkloadReference::bits, located(bits_format()),
                "widths of activations, weights and gradients in layers that do not say it "
                "themselves; default those of `dtype`")
      .optional("fp8", &WorkloadReference::fp8, located(fp8_format()),
                "dense layers in fp8, as Transformer Engine runs them; default none are")
      .optional("buffers", &WorkloadReference::buffers, list_of(located(text()), 0, kMaxBuffers),
                "initializers of an ONNX file that are no parameters; `*` for any characters")
      .optional("master_weights", &WorkloadReference::master_weights, located(boolean()),
                "fp32 copies of parameters in fp16 or bf16; default false")
      .optional("autocast", &WorkloadReference::autocast, located(autocast_format()),
                "products in fp16 or bf16, parameters in fp32, as torch.autocast does it")
      .optional("fused_optimizer", &WorkloadReference::fused_optimizer, located(boolean()),
                "each update is one kernel, without temporaries; default false")
      .optional("fused_accumulation", &WorkloadReference::fused_accumulation, located(boolean()),
                "matrix products add to the fp32 gradients of `master_weights` themselves; default "
                "false")
      .optional("clip_gradients", &WorkloadReference::clip_gradients, located(boolean()),
                "gradients are scaled to a common norm before the update; default false")
      .optional("accumulate", &WorkloadReference::accumulate, integer(1, kMaxAccumulated),
                "microbatches before the optimizer, which keep gradients between them")
      .optional("step_overhead", &WorkloadReference::step_overhead, quantity<Time>(),
                kStepOverheadText)
      .optional("loss", &WorkloadReference::loss, loss_format(), "default cross-entropy")
      .optional("loss_dtype", &WorkloadReference::loss_dtype, located(loss_dtype_format()),
                "fp32: logits in 16 bits are cast before the loss; default: they are not")
      .optional("state_dtype", &WorkloadReference::state_dtype, located(autocast_format()),
                "the type of the optimizer's state, where it is not fp32")
      .optional("framework", &WorkloadReference::framework, located(framework_format()),
                "whose operators the standard blocks of a network are; default as in its file")
      .optional("with", &WorkloadReference::with, with_format(),
                "numbers that the network file lets one choose")
      .format();
}

enum class Target { platform, workload, policy, parallel, sharding, state, run, training };

constexpr std::array kPlatformKeys{"memories",   "processors", "links",  "switches",
                                   "cluster",    "battery",    "energy", "power_limit",
                                   "provenance", "extends",    "about"};
constexpr std::array kWorkloadKeys{"chain",  "graph",  "layers",  "input",
                                   "inputs", "blocks", "defaults"};

std::vector<std::string> keys_of(const Shape& shape) {
  std::vector<std::string> keys;
  for (const Shape::Field& field : shape.fields) keys.push_back(field.key);
  return keys;
}

const std::vector<std::string>& keys_of_references() {
  static const std::vector<std::string> kKeys = keys_of(workload_reference_format().shape);
  return kKeys;
}

std::vector<std::string> policy_keys() {
  std::vector<std::string> keys;
  for (const PolicyInfo& policy : policies())
    for (std::string& key : keys_of(policy.parameters)) keys.push_back(std::move(key));
  return keys;
}

bool is_one_of(std::string_view key, const auto& keys) {
  return std::ranges::find(keys, key) != keys.end();
}

/// One assignment: which part of the scenario it changes, where in it, and to what.
struct Assignment {
  Target target = Target::platform;
  std::string path;
  Location where;
  Node value;
};

std::optional<Assignment> resolve(const std::string& path, const Location& where, Node value,
                                  Diagnostics& diagnostics) {
  const std::size_t dot = path.find('.');
  const std::string head = path.substr(0, dot);
  constexpr std::array prefixes{
      std::pair{"platform", Target::platform}, std::pair{"workload", Target::workload},
      std::pair{"policy", Target::policy},     std::pair{"parallel", Target::parallel},
      std::pair{"sharding", Target::sharding}, std::pair{"state", Target::state},
      std::pair{"run", Target::run},           std::pair{"training", Target::training}};
  for (const auto& [prefix, target] : prefixes)
    if (head == prefix)
      return Assignment{target, dot == std::string::npos ? "" : path.substr(dot + 1), where,
                        std::move(value)};
  if (is_one_of(head, kPlatformKeys))
    return Assignment{Target::platform, path, where, std::move(value)};
  const std::vector<std::string>& of_reference = keys_of_references();
  const std::vector<std::string> of_policy = policy_keys();
  if (is_one_of(head, of_reference) || is_one_of(head, kWorkloadKeys))
    return Assignment{Target::workload, path, where, std::move(value)};
  if (is_one_of(head, of_policy)) return Assignment{Target::policy, path, where, std::move(value)};

  std::vector<std::string> known{"platform", "workload", "policy", "parallel",
                                 "sharding", "state",    "run",    "training"};
  known.insert(known.end(), kPlatformKeys.begin(), kPlatformKeys.end());
  known.insert(known.end(), of_reference.begin(), of_reference.end());
  known.insert(known.end(), kWorkloadKeys.begin(), kWorkloadKeys.end());
  known.insert(known.end(), of_policy.begin(), of_policy.end());
  diagnostics.error(
      where, fmt::format("`{}` is not a path of the platform, the workload or the policy", path),
      did_you_mean(head, known));
  return std::nullopt;
}

/// Turns "vgg19" into {model: vgg19}, so that options can be set beside it.
Node as_mapping(const Node& node, const char* key, Diagnostics& diagnostics) {
  if (!node.is_scalar()) return node;
  Node mapping = parse_value("{}", node.where().origin);
  mapping.set(key, node, diagnostics);
  return mapping;
}

class ScenarioReader {
 public:
  ScenarioReader(const Node& document, const std::filesystem::path& folder,
                 const Overrides& overrides, ScenarioMemo* memo)
      : document_(document), folder_(folder), overrides_(overrides), memo_(memo) {}

  Scenario run() {
    // A part that cannot be read does not keep the others from being looked at.
    static const Format<ScenarioSpec> kFormat = scenario_format();
    auto spec = kFormat.read(document_, diagnostics_);
    spec_ = spec ? std::move(*spec) : parts_that_are_there();
    scenario_.name = spec_.name;
    scenario_.iterations = spec_.run.iterations;
    gather_assignments();
    replace(spec_.platform, Target::platform);
    replace(spec_.workload, Target::workload);
    replace(spec_.policy, Target::policy);
    read_parallel();
    if (!spec_.policy.is_null()) gather(diagnostics_, [&] { read_policies(); });
    if (!spec_.platform.is_null()) gather(diagnostics_, [&] { read_platform_part(); });
    if (!spec_.workload.is_null()) gather(diagnostics_, [&] { read_workload_part(); });
    read_state();
    check_idle_keys();
    read_training();
    read_expectation();
    diagnostics_.throw_if_errors();
    if (scenario_.expect && !overrides_.is_held_to_expectation)
      diagnostics_.warning(scenario_.expect->where,
                           "a run is not held to `expect`; `plimsoll check` is");
    scenario_.warnings = diagnostics_.warnings();
    return std::move(scenario_);
  }

 private:
  [[nodiscard]] ScenarioSpec parts_that_are_there() const {
    ScenarioSpec spec;
    if (!document_.is_mapping()) return spec;
    if (const Node* platform = document_.find("platform")) spec.platform = *platform;
    if (const Node* workload = document_.find("workload")) spec.workload = *workload;
    if (const Node* policy = document_.find("policy")) spec.policy = *policy;
    if (const Node* parallel = document_.find("parallel")) spec.parallel = *parallel;
    if (const Node* sharding = document_.find("sharding")) spec.sharding = *sharding;
    if (const Node* state = document_.find("state")) spec.state = *state;
    if (const Node* training = document_.find("training")) spec.training = *training;
    Diagnostics told_already;
    if (const Node* set = document_.find("set"))
      spec.set = map_of(raw()).read(*set, told_already).value_or(spec.set);
    if (const Node* expect = document_.find("expect"))
      spec.expect = expectation_format().read(*expect, told_already);
    return spec;
  }

  void read_expectation() {
    if (!spec_.expect) return;
    if (is_platform_read_) check_names(*spec_.expect, scenario_.platform, diagnostics_);
    scenario_.expect = std::move(spec_.expect);
  }

  void read_training() {
    const auto node = part_of(spec_.training, Target::training);
    if (!node) return;
    scenario_.training = training_format().read(*node, diagnostics_);
    if (scenario_.training && is_platform_read_)
      check_training(*scenario_.training, scenario_.platform, diagnostics_);
  }

  void gather_assignments() {
    const auto add = [&](const std::string& path, const Location& where, Node value) {
      if (auto assignment = resolve(path, where, std::move(value), diagnostics_))
        assignments_.push_back(std::move(*assignment));
    };
    for (const auto* from_file : {&std::as_const(spec_.set), &overrides_.set_in_file})
      for (const auto& [path, value] : *from_file) add(path.value, path.where, value);
    int number = 0;
    for (const auto& assignment : overrides_.set) {
      const std::string origin = fmt::format("--set #{}", ++number);
      gather(diagnostics_, [&] {
        add(assignment.first, Location{origin, 0, 0}, parse_value(assignment.second, origin));
      });
    }
  }

  /// `platform=NAME`: the whole part is another one. What is set below it applies to that.
  void replace(Node& node, Target target) const {
    for (const Assignment& assignment : assignments_)
      if (assignment.target == target && assignment.path.empty()) node = assignment.value;
  }

  void apply(Node& node, Target target) {
    for (const Assignment& assignment : assignments_)
      if (assignment.target == target && !assignment.path.empty())
        node.set(assignment.path, assignment.value, diagnostics_);
  }

  /// What is said of `target`, in the file and by assignments; nothing where nothing is.
  std::optional<Node> part_of(std::optional<Node> node, Target target) {
    for (const Assignment& assignment : assignments_)
      if (assignment.target == target && !node) node = parse_value("{}", assignment.where.origin);
    if (!node) return node;
    replace(*node, target);
    apply(*node, target);
    return node;
  }

  static bool has_tensor(const Node& parallel) {
    const Node* size = parallel.find("tensor");
    return size != nullptr && (!size->is_scalar() || size->scalar() != "1");
  }

  void read_parallel() {
    // A size that is misspelt or wrong is one error, not another one for what is read in its place.
    bool is_mesh_known = true;
    if (auto node = part_of(spec_.parallel, Target::parallel)) {
      if (overrides_.may_lack_tensor && !has_tensor(*node)) switch_off_without_tensor(*node);
      scenario_.parallel = parallel_format().read(*node, diagnostics_);
      is_mesh_known = scenario_.parallel.has_value();
      scenario_.parallel_key = key_text(*node);
    }
    const auto node = part_of(spec_.sharding, Target::sharding);
    if (!node) return;
    scenario_.parallel_key += key_text(*node);
    const auto sharding = sharding_format().read(*node, diagnostics_);
    if (!sharding) return;
    scenario_.sharding = *sharding;
    const bool has_others = scenario_.parallel && scenario_.parallel->alike() > 1;
    if (has_others || !is_mesh_known) {
      sharding_ = node;
    } else if (overrides_.may_lack_replicas) {
      scenario_.sharding = {};
      scenario_.sharding.prefetch = sharding->prefetch;  // of `state`
    } else {
      refuse_without_others(*node);
    }
  }

  /// What is about ranks that hold the same, and would be ignored where there are none.
  void refuse_without_others(const Node& node) {
    const ShardingOptions& it = scenario_.sharding;
    const std::pair<const char*, bool> keys[] = {
        {"overlap", !it.overlap},
        {"reshard", it.reshard.has_value()},
        {"from_master", it.from_master && it.from_master->value},
        {"bucket", it.bucket.has_value()}};
    const auto error = [&](const Location& where, const std::string& what) {
      diagnostics_.error(where,
                         fmt::format("{} what ranks of the data, context and expert axes all hold, "
                                     "and there is one of them",
                                     what),
                         "`parallel: {data: N}` says how many there are");
    };
    if (it.stage > 0)
      error(it.where, "`sharding` divides");
    else
      for (const auto& [key, is_given] : keys)
        if (is_given) error(node.find(key)->where(), fmt::format("`{}` is about", key));
    sharding_ = node;
  }

  /// What would be ignored in this stage.
  void check_idle_keys() {
    if (!sharding_ || overrides_.may_have_idle_keys) return;
    const ShardingOptions& it = scenario_.sharding;
    const Node* prefetch = sharding_->find("prefetch");
    if (prefetch != nullptr && it.stage < 3 && !scenario_.state)
      diagnostics_.error(prefetch->where(),
                         fmt::format("`prefetch` is about parameters that ranks gather for each "
                                     "unit, and in stage {} they do not",
                                     it.stage),
                         "it goes with `stage: 3`, or with `state`");
    if (it.group && it.stage == 0)
      diagnostics_.error(it.group->where,
                         "`group` is about state that ranks hold in parts, and in stage 0 they "
                         "hold all of it",
                         "it goes with stages 1, 2 and 3");
    if (it.bucket && it.stage == 3)
      diagnostics_.error(it.bucket->where,
                         "`bucket` is about gradients that are reduced together, and in stage 3 "
                         "those of each unit are",
                         "it goes with stages 0, 1 and 2");
  }

  void read_state() {
    const auto node = part_of(spec_.state, Target::state);
    if (!node) return;
    scenario_.parallel_key += "state " + key_text(*node);
    scenario_.state = state_format().read(*node, diagnostics_);
    if (scenario_.state && is_platform_read_)
      check_state(*scenario_.state, scenario_.platform, diagnostics_);
  }

  void read_policies() {
    std::vector<Node> policies;
    if (spec_.policy.is_sequence())
      policies = spec_.policy.items();
    else
      policies.push_back(spec_.policy);
    if (policies.empty() || policies.size() > kMaxPolicies)
      diagnostics_.error(
          spec_.policy.where(),
          fmt::format("a list of {} policies; expected 1 to {}", policies.size(), kMaxPolicies));
    if (!overrides_.policies.empty()) policies = chosen_policies(policies);
    set_parameters(policies);
    for (const Node& policy : policies)
      (void)bind_policy(policy, diagnostics_);  // all errors of the file at once
    scenario_.policies = std::move(policies);
    Node run = parse_value("{}", "run");
    apply(run, Target::run);
    if (const Node* iterations = run.find("iterations"))
      if (const auto value = integer(1, kMaxRunIterations).read(*iterations, diagnostics_))
        scenario_.iterations = *value;
  }

  /// Each assignment is for those policies that have the parameter; one at least must have it.
  void set_parameters(std::vector<Node>& policies) {
    for (const Assignment& assignment : assignments_) {
      if (assignment.target != Target::policy || assignment.path.empty()) continue;
      const std::string parameter = assignment.path.substr(0, assignment.path.find('.'));
      std::vector<std::string> known;
      bool any_has_it = false;
      for (Node& policy : policies) {
        policy = as_mapping(policy, "name", diagnostics_);
        const std::vector<std::string> its_own = parameters_of(policy);
        known.insert(known.end(), its_own.begin(), its_own.end());
        // Whatever is set of a policy that nobody knows, its name is the error.
        const bool has_it = its_own.empty() || is_one_of(parameter, its_own);
        any_has_it = any_has_it || has_it;
        if (has_it) policy.set(assignment.path, assignment.value, diagnostics_);
      }
      if (!any_has_it && !overrides_.may_lack_parameters)
        diagnostics_.error(assignment.where,
                           fmt::format("no policy of the scenario has a parameter `{}`", parameter),
                           did_you_mean(parameter, known));
    }
  }

  /// Empty for a policy that there is not.
  static std::vector<std::string> parameters_of(const Node& policy) {
    const Node* name = policy.find("name");
    const PolicyInfo* info =
        name != nullptr && name->is_scalar() ? find_policy(name->scalar()) : nullptr;
    return info != nullptr ? keys_of(info->parameters) : std::vector<std::string>{};
  }

  /// Policies named on the command line keep the parameters that the scenario gives for that name.
  std::vector<Node> chosen_policies(const std::vector<Node>& given) {
    std::vector<Node> chosen;
    for (const std::string& name : overrides_.policies) {
      const auto same = std::ranges::find_if(given, [&](const Node& node) {
        const Node* its_name = node.is_mapping() ? node.find("name") : &node;
        return its_name && its_name->is_scalar() && its_name->scalar() == name;
      });
      if (same != given.end() && same->is_mapping()) scenario_.policies_are_chosen = true;
      chosen.push_back(same != given.end() ? *same : parse_value(name, kChosenOrigin));
    }
    return chosen;
  }

  void read_platform_part() {
    for (const Assignment& assignment : assignments_)
      if (assignment.target == Target::platform)
        scenario_.assigned_platform_paths.push_back(assignment.path);
    scenario_.platform_key = key_of(Target::platform);
    const auto part = recalled(memo_ ? &memo_->platforms : nullptr, scenario_.platform_key,
                               [this] { return platform_part(); });
    if (!part) return;
    scenario_.platform = part->platform;
    scenario_.platform_name = scenario_.platform.name;
    tell(part->warnings);
    is_platform_read_ = true;
  }

  void tell(const std::vector<Diagnostic>& warnings) {
    for (const Diagnostic& d : warnings) diagnostics_.warning(d.where, d.message, d.hint);
  }

  std::shared_ptr<const LoadedPlatform> platform_part() {
    Node node = spec_.platform;
    if (node.is_scalar()) node = *document_of(node.scalar(), "platforms", node.where());
    const PlatformResolver resolver = [this](const Located<std::string>& name) {
      return recalled(
                 memo_ ? &memo_->extended_platforms : nullptr,
                 name.where.origin + '\0' + name.value,
                 [&] {
                   return std::make_shared<const std::optional<Node>>(resolver_of_extends()(name));
                 })
          .
          operator*();
    };
    if (!parts_are_known(node, resolver)) return nullptr;
    apply(node, Target::platform);
    Diagnostics of_platform;
    Platform platform = read_platform(node, of_platform, resolver);
    if (of_platform.has_errors()) tell(of_platform.warnings());
    of_platform.throw_if_errors();
    return std::make_shared<const LoadedPlatform>(
        LoadedPlatform{std::move(platform), of_platform.warnings()});
  }

  /// What the memo knows under this key; else what `make` makes, kept unless it is nothing.
  template <class T, class Make>
  static std::shared_ptr<const T> recalled(BoundedCache<T>* memo, const std::string& key,
                                           Make make) {
    return memo != nullptr ? memo->recall(key, make) : make();
  }

  /// The document is the same for all scenarios of a memo: what is assigned tells them apart.
  std::string key_of(Target target) const {
    std::string key;
    if (memo_ == nullptr) return key;
    for (const Assignment& assignment : assignments_)
      if (assignment.target == target)
        key += key_text(assignment.path) + key_text(assignment.value);
    return key;
  }

  /// What a name means depends on the file that holds it, which may be a sweep or a suite.
  std::shared_ptr<const Node> document_of(const std::string& name, const std::string& kind,
                                          const Location& where) {
    const bool is_elsewhere = where.line > 0 && where.origin != document_.where().origin;
    const std::filesystem::path folder =
        is_elsewhere ? std::filesystem::path(where.origin).parent_path() : folder_;
    return recalled(
        memo_ ? &memo_->documents : nullptr, kind + '\0' + folder.string() + '\0' + name,
        [&] { return std::make_shared<const Node>(SearchPath(folder).read(name, kind, where)); });
  }

  /// Setting a number of a link that is not there would make half a link of that name.
  bool parts_are_known(const Node& node, const PlatformResolver& resolver) {
    bool known_all = true;
    Diagnostics elsewhere;
    const Node merged = merge_layers(node, elsewhere, resolver).document;
    for (const Assignment& assignment : assignments_) {
      if (assignment.target != Target::platform) continue;
      const std::size_t first = assignment.path.find('.');
      const std::size_t second = assignment.path.find('.', first + 1);
      if (second == std::string::npos) continue;
      const std::string kind = assignment.path.substr(0, first);
      const std::string part = assignment.path.substr(first + 1, second - first - 1);
      const Node* parts = merged.find(kind);
      if (!parts || !parts->is_mapping() || parts->find(part)) continue;
      if (kind != "memories" && kind != "processors" && kind != "links") continue;
      std::vector<std::string> known;
      for (const Node::Entry& entry : parts->entries()) known.push_back(entry.key.scalar());
      known_all = false;
      diagnostics_.error(assignment.where,
                         fmt::format("the platform's `{}` have no `{}`", kind, part),
                         hint_of_names(part, known));
    }
    return known_all;
  }

  void read_workload_part() {
    scenario_.workload_key = key_of(Target::workload);
    if (memo_ != nullptr) {
      if (const auto part = memo_->workloads.find(scenario_.workload_key)) {
        scenario_.workload = part->workload;
        scenario_.workload_name = part->name;
        scenario_.workload_options = part->options;
        return;
      }
    }
    read_workload_afresh();
    if (memo_ != nullptr && !diagnostics_.has_errors())
      memo_->workloads.keep(
          scenario_.workload_key,
          std::make_shared<const LoadedWorkload>(LoadedWorkload{
              scenario_.workload, scenario_.workload_name, scenario_.workload_options}));
  }

  void read_workload_afresh() {
    const bool in_place = spec_.workload.is_mapping() && spec_.workload.find("workload");
    if (in_place) {
      read_workload_document(spec_.workload);
      return;
    }
    Node reference = as_mapping(spec_.workload, "model", diagnostics_);
    for (const Assignment& assignment : assignments_)
      if (assignment.target == Target::workload && !assignment.path.empty() &&
          is_reference_path(assignment.path))
        reference.set(assignment.path, assignment.value, diagnostics_);
    static const Format<WorkloadReference> kFormat = workload_reference_format();
    const auto fields = kFormat.read(reference, diagnostics_);
    if (!fields) return;
    const Located<std::string>* named = nullptr;
    for (const auto* source : {&fields->model, &fields->onnx, &fields->profile}) {
      if (!*source) continue;
      if (named != nullptr) {
        diagnostics_.error((*source)->where,
                           "the workload has another source already; expected one of `model`, "
                           "`onnx` and `profile`");
        return;
      }
      named = &**source;
    }
    if (named == nullptr) {
      diagnostics_.error(reference.where(),
                         "the workload names no `model`, and no `onnx` or `profile` file");
      return;
    }
    scenario_.workload_options = {.batch = fields->batch,
                                  .accumulate = fields->accumulate,
                                  .dtype = fields->dtype,
                                  .optimizer = fields->optimizer,
                                  .loss = fields->loss,
                                  .loss_dtype = fields->loss_dtype,
                                  .state_dtype = fields->state_dtype,
                                  .framework = fields->framework,
                                  .with = fields->with,
                                  .trained = fields->trained,
                                  .trained_from = fields->trained_from,
                                  .lora = fields->lora,
                                  .bits = fields->bits,
                                  .buffers = fields->buffers,
                                  .step_overhead = fields->step_overhead};
    if (fields->master_weights) use_master_weights(*fields->master_weights);
    if (fields->autocast) use_autocast(*fields->autocast);
    if (fields->fp8 && fields->fp8->value.recipe != Fp8Recipe::none)
      scenario_.workload_options.fp8 = fields->fp8;
    scenario_.workload_options.fuses_optimizer = where_it_is_wanted(fields->fused_optimizer);
    scenario_.workload_options.fuses_accumulation = where_it_is_wanted(fields->fused_accumulation);
    scenario_.workload_options.clips_gradients = where_it_is_wanted(fields->clip_gradients);
    if (fields->model && is_onnx_path(fields->model->value))
      refuse_model(*fields->model, "an ONNX file", "onnx");
    else if (fields->model && is_pipedream_path(fields->model->value))
      refuse_model(*fields->model, "a profile of PipeDream", "profile");
    else if (fields->onnx)
      read_file_reference(*fields->onnx, "ONNX file", read_onnx_workload);
    else if (fields->profile && is_pipedream_path(fields->profile->value))
      return read_file_reference(*fields->profile, "profile of PipeDream", read_pipedream);
    else
      read_workload_document(*document_of(named->value, "workloads", named->where));
    if (fields->profile && !std::holds_alternative<ProfileSpec>(scenario_.workload))
      diagnostics_.error(fields->profile->where,
                         fmt::format("`{}` is not a profile; name it under `model`", named->value));
  }

  /// A file that has a key of its own.
  void refuse_model(const Located<std::string>& model, const char* kind, const char* key) {
    diagnostics_.error(
        model.where,
        fmt::format("`{}` is {}, and `model` takes a network of YAML", model.value, kind),
        fmt::format("name it under `{0}`: `{{{0}: {1}}}`", key, model.value));
  }

  static std::optional<Location> where_it_is_wanted(const std::optional<Located<bool>>& option) {
    return option && option->value ? std::optional(option->where) : std::nullopt;
  }

  void use_master_weights(const Located<bool>& wanted) {
    scenario_.workload_options.master_weights = wanted.value;
    const DType dtype = scenario_.workload_options.dtype.value_or(DType::fp32);
    if (wanted.value && bytes_per_element(dtype) == bytes_per_element(DType::fp32))
      diagnostics_.error(wanted.where,
                         "`master_weights` are copies of parameters in fp16 or bf16; expected one "
                         "of these as `dtype`");
  }

  void use_autocast(const Located<DType>& wanted) {
    WorkloadOptions& options = scenario_.workload_options;
    options.autocast = wanted.value;
    if (options.master_weights)
      diagnostics_.error(wanted.where,
                         "`autocast` leaves parameters in fp32, and `master_weights` are copies of "
                         "parameters in fp16 or bf16; expected one of the two");
    else if (options.dtype && bytes_per_element(*options.dtype) < bytes_per_element(DType::fp32))
      diagnostics_.error(wanted.where,
                         "`autocast` runs a network of fp32 or tf32 partly in 16 bits, and `dtype` "
                         "is " +
                             to_text(*options.dtype) + " already; expected one of the two");
  }

  /// A path relative to the scenario; nothing in the file itself can be set.
  void read_file_reference(const Located<std::string>& named, const std::string& kind,
                           auto(&read)(const std::filesystem::path&)) {
    for (const Assignment& assignment : assignments_)
      if (assignment.target == Target::workload && !assignment.path.empty() &&
          !is_reference_path(assignment.path))
        diagnostics_.error(assignment.where,
                           fmt::format("`workload.{}` cannot be set in a file of this kind: {}",
                                       assignment.path, kind),
                           did_you_mean(assignment.path, keys_of_references()));
    const std::filesystem::path path = (folder_ / named.value).lexically_normal();
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
      diagnostics_.error(named.where, fmt::format("there is no {} `{}`", kind, path.string()));
      return;
    }
    scenario_.workload = read(path);
    scenario_.workload_name = name_of(scenario_.workload);
  }

  static bool is_reference_path(const std::string& path) {
    return is_one_of(path.substr(0, path.find('.')), keys_of_references());
  }

  void read_workload_document(Node node) {
    const bool in_place = node.where().origin == spec_.workload.where().origin;
    for (const Assignment& assignment : assignments_)
      if (assignment.target == Target::workload && !assignment.path.empty() &&
          (in_place || !is_reference_path(assignment.path)))
        node.set(assignment.path, assignment.value, diagnostics_);
    scenario_.workload = read_workload(node);
    scenario_.workload_name = name_of(scenario_.workload);
  }

  const Node& document_;
  const std::filesystem::path folder_;
  const Overrides& overrides_;
  ScenarioMemo* const memo_;
  Diagnostics diagnostics_;
  ScenarioSpec spec_;
  bool is_platform_read_ = false;
  std::vector<Assignment> assignments_;
  Scenario scenario_;
  std::optional<Node> sharding_;  ///< as given, where it could be read
};

}  // namespace

bool sets_replicas(std::string_view path) {
  return path == "parallel" || path == "parallel.data" || path == "parallel.context" ||
         path == "parallel.expert";
}

bool sets_tensor(std::string_view path) {
  return path == "parallel" || path == "parallel.tensor";
}

Scenario load_scenario(const std::filesystem::path& path, const Overrides& overrides) {
  const Node document = read_document(path);
  expect_kind(document, DocumentKind::scenario);
  return read_scenario(document, path.parent_path(), overrides);
}

Scenario read_scenario(const Node& document, const std::filesystem::path& folder,
                       const Overrides& overrides, ScenarioMemo* memo) {
  return ScenarioReader(document, folder, overrides, memo).run();
}

std::optional<std::string> policy_parameter_of(const std::string& path) {
  Diagnostics told_where_it_is_set;
  const auto assignment = resolve(path, {}, {}, told_where_it_is_set);
  if (!assignment || assignment->target != Target::policy || assignment->path.empty())
    return std::nullopt;
  return assignment->path.substr(0, assignment->path.find('.'));
}

std::string scenario_schema() {
  return json_schema(scenario_format().shape, "Plimsoll scenario");
}

}  // namespace plimsoll
