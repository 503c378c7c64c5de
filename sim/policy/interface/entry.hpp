/// How a policy's file makes its registry entry: a struct of parameters, their description, a
/// function.
#pragma once

#include "policy/interface/policy.hpp"

#include <string>
#include <utility>

namespace plimsoll {

/// Parameters that every policy takes: the name that chose it.
struct CommonParameters {
  Location where;
  std::string name;
};

/// Single-processor policies run on one processor: `on`, by default the only one.
struct SingleProcessorParameters : CommonParameters {
  std::optional<Located<std::string>> on;
};

/// What planning does with the workload.
struct PolicyFacts {
  /// Plans for a workload built with WorkloadOptions::split_backward.
  bool splits_backward = false;
  /// Copies of the parameters of a pipeline, which share its microbatches.
  std::int64_t copies_of_parameters = 1;
  std::optional<std::int64_t> updates_after = {};  ///< BoundPolicy::updates_after
};

/// The part of an entry that people read.
struct PolicyText {
  std::string name, summary, paper, assumes, guarantees, complexity;
  PolicyFacts facts = {};
  bool is_for_chains = false;          ///< PolicyInfo::is_for_chains
  bool is_for_compute_graphs = false;  ///< PolicyInfo::is_for_compute_graphs
  bool is_online = false;              ///< PolicyInfo::is_online
};

namespace detail {

/// What a bound policy says of itself, as far as its parameters have it.
template <class Parameters>
void tell(BoundPolicy& bound, const Parameters& parameters, const PolicyFacts& facts) {
  bound.splits_backward = facts.splits_backward;
  if constexpr (requires { parameters.of_mini_batch(); }) {
    bound.is_pipeline = true;
    bound.microbatches = parameters.of_mini_batch();
    bound.microbatches_of_copy =
        (parameters.microbatches + facts.copies_of_parameters - 1) / facts.copies_of_parameters;
    bound.replicas = parameters.equal_replicas().value_or(1);
    bound.updates_after = facts.updates_after;
  } else if constexpr (requires { parameters.microbatches; }) {
    bound.microbatches = parameters.microbatches;
  }
  if constexpr (requires { parameters.splits_backward(); })
    bound.splits_backward = parameters.splits_backward();
  if constexpr (requires { parameters.accumulate; })
    if (parameters.accumulate) bound.updates_after = parameters.accumulate->value;
  if constexpr (requires { parameters.on; })
    if (parameters.on) bound.processors.push_back(parameters.on->value);
  if constexpr (requires { parameters.devices; })
    if (parameters.devices)
      for (const auto& device : *parameters.devices) bound.processors.push_back(device.value);
  if constexpr (requires { parameters.budget; })
    if (parameters.budget) bound.budget = parameters.budget->value;
  if constexpr (requires { parameters.memory_limit; })
    if (parameters.memory_limit) bound.budget = parameters.memory_limit->value;
}

}  // namespace detail

/// Fills in what follows from the type of the parameters. `Parameters` derives from
/// CommonParameters; `describe` adds its fields to a Record<Parameters>.
template <class Parameters>
[[nodiscard]] PolicyInfo make_policy(
    PolicyText text, Record<Parameters> record,
    std::function<Planned(const Problem&, const Parameters&)> plan) {
  std::string Parameters::*chosen = &Parameters::name;
  record.required("name", chosen, plimsoll::text(), "the policy").where(&Parameters::where);
  const Format<Parameters> format = record.format();
  const PolicyFacts facts = text.facts;
  const auto bind = [format, plan, facts](const Node& node,
                                          Diagnostics& diagnostics) -> std::optional<BoundPolicy> {
    auto parameters = format.read(node, diagnostics);
    if (!parameters) return std::nullopt;
    // A policy given by its name alone is in a mapping that nobody wrote.
    if (const Node* chosen_by = node.find("name")) parameters->where = chosen_by->where();
    BoundPolicy bound{.name = parameters->name};
    detail::tell(bound, *parameters, facts);
    if constexpr (requires { parameters->drop_savings(); })
      if (Parameters alone = *parameters; alone.drop_savings()) {
        if constexpr (requires { alone.memory_limit; })
          if (alone.memory_limit) alone.memory_limit->value = Bytes::unlimited();
        bound.schedule_alone = [plan, alone](const Problem& problem) {
          return plan(problem, alone);
        };
      }
    bound.plan = [plan, p = std::move(*parameters)](const Problem& problem) {
      Planned planned = plan(problem, p);
      if constexpr (requires { p.improve; })
        if (auto* own = std::get_if<Plan>(&planned); own != nullptr && p.improve)
          if (own->claims.chosen.empty()) own->claims.chosen = p.name;
      return planned;
    };
    return bound;
  };
  return {std::move(text.name),
          std::move(text.summary),
          std::move(text.paper),
          std::move(text.assumes),
          std::move(text.guarantees),
          std::move(text.complexity),
          text.is_for_chains,
          text.is_for_compute_graphs,
          text.is_online,
          format.shape,
          bind};
}

/// A Record that has `on` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> single_processor_record(const std::string& name) {
  Record<Parameters> record("policy " + name, "Parameters of " + name + ".");
  std::optional<Located<std::string>> Parameters::*on = &Parameters::on;
  record.optional("on", on, located(plimsoll::name()), "the processor; by default the only one");
  return record;
}

/// The processor that `on` names, or the platform's only one. Throws InputError.
[[nodiscard]] ProcessorId processor_for(const Problem& problem,
                                        const SingleProcessorParameters& parameters);

/// The processor of that name. Throws InputError with the nearest one.
[[nodiscard]] ProcessorId processor_named(const Problem& problem, const Located<std::string>& name);

}  // namespace plimsoll
