/// The parameters that all pipeline policies share.
#pragma once

#include "plan/build/collective.hpp"
#include "policy/interface/entry.hpp"
#include "policy/pipeline/parameters/operator_reruns.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plimsoll {

/// A named partitioner, or the places to cut: the number of chain stages before each cut.
using PartitionChoice = std::variant<std::string, std::vector<std::int64_t>>;

/// As many replicas of every stage, or of each by itself.
using ReplicaChoice = std::variant<std::int64_t, std::vector<std::int64_t>>;

struct PipelineParameters : CommonParameters {
  std::int64_t microbatches = 1;  ///< of one replica, where every stage has as many
  std::optional<std::vector<Located<std::string>>> devices;
  std::int64_t virtual_stages = 1;
  std::optional<Located<PartitionChoice>> partition;
  std::optional<Located<std::string>> layout;
  /// What slots keep less of (policy/pipeline/schedule/slot_savings.hpp, of single operators
  /// policy/pipeline/reruns/rerun_planner.hpp).
  std::optional<Located<RecomputeChoice>> recompute;
  std::optional<Located<SlotChoice>> offload;
  std::int64_t distance = 2;
  std::optional<Located<std::string>> to;
  std::optional<Located<std::int64_t>> data_parallel;
  std::optional<Located<ReplicaChoice>> replicas;
  AllReduce all_reduce = AllReduce::ring;
  /// Where inputs come from (policy/pipeline/schedule/data_loading.hpp).
  std::optional<Located<std::string>> load_from;
  std::int64_t load_ahead = 1;
  /// Of the times of two tasks that overlap, one after the other: what they take together.
  Ratio overlap = kWhole;
  /// The schedule keeps every microbatch before the first backward; no key of users'.
  bool keeps_all = false;

  /// Leaves out recomputation and offload; whether there was any.
  bool drop_savings();
  [[nodiscard]] bool offloads() const { return offload && !offload->value.is_none(); }
  [[nodiscard]] bool recomputes_slots() const {
    return recompute && !recompute->value.slots.is_none();
  }
  /// What is said of single operators that run again, or nullptr.
  [[nodiscard]] const OperatorReruns* operator_reruns() const {
    return recompute && recompute->value.operators ? &*recompute->value.operators : nullptr;
  }
  /// Whether a planner chooses them for a budget.
  [[nodiscard]] bool plans_reruns() const {
    return operator_reruns() != nullptr && operator_reruns()->has_budget();
  }
  /// Whether a slot runs its forward once more.
  [[nodiscard]] bool recomputes(std::size_t slot) const;
  /// Whether that is the name of the partitioner.
  [[nodiscard]] bool asks_for_partition(std::string_view partitioner) const;
  /// Whether the partition says how many replicas a stage has.
  [[nodiscard]] bool finds_replicas() const { return asks_for_partition("pipedream-replicated"); }
  /// Whether one of several replicas is played for all of them.
  [[nodiscard]] bool is_folded() const { return data_parallel && data_parallel->value > 1; }
  /// How many replicas every stage has; nothing where they may differ.
  [[nodiscard]] std::optional<std::int64_t> equal_replicas() const;
  /// Microbatches of the whole mini-batch, as they are written.
  [[nodiscard]] std::int64_t of_mini_batch() const;
  /// Microbatches whose inputs a device holds that has `in_flight` of `all`.
  [[nodiscard]] std::int64_t inputs_there(std::int64_t in_flight, std::int64_t all) const;
};

/// A pipeline's `partition`, as it is written.
[[nodiscard]] Format<PartitionChoice> partition_format();

[[nodiscard]] Format<ReplicaChoice> replicas_format();

/// Whether replicas are given in one way at most; reports it.
bool check_replicas(const PipelineParameters& parameters, Diagnostics& diagnostics);

/// Deals the mini-batch out to replicas of which every stage has as many.
void deal_out(PipelineParameters& parameters, const Node& node, Diagnostics& diagnostics);

/// Adds `data_parallel`, `replicas` and `all_reduce` to a record, unchecked.
template <class Parameters>
void add_replica_keys(Record<Parameters>& record) {
  std::optional<Located<std::int64_t>> Parameters::*data_parallel = &Parameters::data_parallel;
  std::optional<Located<ReplicaChoice>> Parameters::*replicas = &Parameters::replicas;
  AllReduce Parameters::*all_reduce = &Parameters::all_reduce;
  record
      .optional("data_parallel", data_parallel, located(integer(1, 65'536)),
                "replicas of the whole pipeline, which share the microbatches and reduce their "
                "gradients; one is played for all of them, which must be alike and disjoint; "
                "`devices` holds the replicas of the first stage, then those of the second, and so "
                "on; default 1")
      .optional("replicas", replicas, located(replicas_format()),
                "the same with every replica played, over links of any kind: a number, or (only "
                "pipeline/gpipe, pipeline/1f1b) one for each stage, to which microbatches go in "
                "turn; default 1")
      .optional("all_reduce", all_reduce,
                one_of<AllReduce>({{"ring", AllReduce::ring}, {"tree", AllReduce::tree}}),
                "`ring`, or `tree`: recursive halving and doubling, of 2, 4, 8, .. replicas; "
                "default ring");
}

/// Adds them to the record of a schedule whose `microbatches` the replicas share.
template <class Parameters>
void add_replicas(Record<Parameters>& record) {
  add_replica_keys(record);
  record.check({"data_parallel", "replicas", "microbatches"},
               [](Parameters& parameters, const Node& node, Diagnostics& diagnostics) {
                 deal_out(parameters, node, diagnostics);
               });
}

/// Reports what is given of `keys` without `with`, to which they belong.
void check_belonging(const Node& node, std::initializer_list<const char*> keys, const char* with,
                     Diagnostics& diagnostics);

/// Adds `recompute` to a record of parameters that derive from PipelineParameters, for whole slots.
template <class Parameters>
void add_slot_recompute(Record<Parameters>& record) {
  std::optional<Located<RecomputeChoice>> Parameters::*recompute = &Parameters::recompute;
  record.optional(
      "recompute", recompute, located(slot_recompute_format()),
      "`full`: every slot keeps only its input and runs its forward once more before its "
      "backward; or the numbers of the slots that do, from 0 along the network; default none");
}

/// The same, or for single operators.
template <class Parameters>
void add_recompute(Record<Parameters>& record) {
  std::optional<Located<RecomputeChoice>> Parameters::*recompute = &Parameters::recompute;
  record.optional(
      "recompute", recompute, located(operator_recompute_format()),
      "`full`: every slot keeps only its input and runs its forward once more before its "
      "backward; or the numbers of the slots that do, from 0 along the network; `selective`: the "
      "cores of attention run again, from the scores to their product with the values; or a "
      "`policy` that plans which single operators of each device run again for the memory that "
      "the schedule leaves it; default none");
}

/// Adds `offload` and `to`, likewise.
template <class Parameters>
void add_offload(Record<Parameters>& record) {
  std::optional<Located<SlotChoice>> Parameters::*offload = &Parameters::offload;
  std::optional<Located<std::string>> Parameters::*to = &Parameters::to;
  record
      .optional("offload", offload, located(offload_format()),
                "what leaves its device after a forward and comes back for the backward: `all` "
                "that slots keep, that of the slots listed, or of a share of the microbatches "
                "(`50 %`); default none")
      .optional("to", to, located(plimsoll::name()),
                "the memory to offload to; default: for each device the one with the fastest way "
                "out and back")
      .check({"offload"}, [](Parameters&, const Node& node, Diagnostics& diagnostics) {
        check_belonging(node, {"to"}, "offload", diagnostics);
      });
}

/// Adds `offload`, `to` and `distance`.
template <class Parameters>
void add_offload_ahead(Record<Parameters>& record) {
  add_offload(record);
  std::int64_t Parameters::*distance = &Parameters::distance;
  record
      .optional("distance", distance, integer(1, 1'000'000),
                "how many tasks of its device ahead what was offloaded is sent for; default 2")
      .check({"offload"}, [](Parameters&, const Node& node, Diagnostics& diagnostics) {
        check_belonging(node, {"distance"}, "offload", diagnostics);
      });
}

/// Adds `load_from` and `load_ahead`, likewise.
template <class Parameters>
void add_loading(Record<Parameters>& record) {
  std::optional<Located<std::string>> Parameters::*load_from = &Parameters::load_from;
  std::int64_t Parameters::*load_ahead = &Parameters::load_ahead;
  record
      .optional("load_from", load_from, located(plimsoll::name()),
                "the memory that the inputs of microbatches are copied from; default: they are "
                "where they are read from the start")
      .optional("load_ahead", load_ahead, integer(0, 1'000'000),
                "microbatches that a device loads ahead of the one whose forward begins; with 0 it "
                "waits for each; default 1")
      .check({"load_from"}, [](Parameters&, const Node& node, Diagnostics& diagnostics) {
        check_belonging(node, {"load_ahead"}, "load_from", diagnostics);
      });
}

/// Adds `overlap`, to the record of a schedule that has overlapped pairs.
template <class Parameters>
[[nodiscard]] Record<Parameters> with_overlap(Record<Parameters> record) {
  Ratio Parameters::*overlap = &Parameters::overlap;
  record.optional("overlap", overlap, efficiency(),
                  "how long a forward and a backward that overlap take together: a share of their "
                  "times one after the other, but at least as long as the longer of them; default "
                  "100 %");
  return record;
}

/// A Record that has `microbatches`, `devices`, `virtual_stages`, `partition` and `layout`, for
/// schedules without what others add; `virtual_stages` is what the policy takes where
/// the parameters do not say.
template <class Parameters = PipelineParameters>
[[nodiscard]] Record<Parameters> cut_record(const std::string& name, std::int64_t virtual_stages) {
  Record<Parameters> record("policy " + name, "Parameters of " + name + ".");
  std::int64_t Parameters::*microbatches = &Parameters::microbatches;
  std::optional<std::vector<Located<std::string>>> Parameters::*devices = &Parameters::devices;
  std::int64_t Parameters::*stages = &Parameters::virtual_stages;
  std::optional<Located<PartitionChoice>> Parameters::*partition = &Parameters::partition;
  std::optional<Located<std::string>> Parameters::*layout = &Parameters::layout;
  record
      .optional("microbatches", microbatches, integer(1, 1'000'000),
                "microbatches of one mini-batch; default 1")
      .optional("devices", devices, list_of(located(plimsoll::name()), 1, 65'536),
                "processors in pipeline order; default: all of the platform")
      .optional("virtual_stages", stages, integer(1, 1'000'000),
                "stages held by one device; default " + std::to_string(virtual_stages))
      .optional(
          "partition", partition, located(partition_format()),
          "`balanced` (by time, with several stages a device by time and messages of every pass "
          "over "
          "the devices), `balanced-memory` (the least greatest memory of a device), `pipedream` "
          "(PipeDream's program without replicas, with transfers), "
          "`pipedream-replicated` (only pipeline/gpipe, pipeline/1f1b: the program with replicas, "
          "on the levels of the platform's links, blocks of neighbours in `devices`), "
          "`1f1b-star` (only pipeline/1f1b-star: the least period under its memory limit), "
          "`madpipe` (only pipeline/periodic: cuts and placement for a short one), or the numbers "
          "of chain stages before each cut; default: one chain stage a slot where the "
          "counts are equal, else balanced")
      .optional("layout", layout, located(text()),
                "the cuts as Megatron-LM writes them: `Et*2|(tt|)*2tL`, in place of `partition` "
                "(E embedding, t layer, m multi-token prediction, L head and loss, | cut, *n "
                "repeats)")
      .check({"virtual_stages"},
             [virtual_stages](Parameters& parameters, const Node& node, Diagnostics&) {
               if (node.find("virtual_stages") == nullptr)
                 parameters.virtual_stages = virtual_stages;
             });
  return record;
}

/// A Record that has all of PipelineParameters.
template <class Parameters = PipelineParameters>
[[nodiscard]] Record<Parameters> pipeline_record(const std::string& name,
                                                 std::int64_t virtual_stages = 1) {
  Record<Parameters> record = cut_record<Parameters>(name, virtual_stages);
  add_recompute(record);
  add_offload_ahead(record);
  add_loading(record);
  add_replicas(record);
  return record;
}

// Most schedules take these and no others: what describes them is compiled once.
extern template Record<PipelineParameters> pipeline_record<PipelineParameters>(const std::string&,
                                                                               std::int64_t);
extern template PolicyInfo make_policy<PipelineParameters>(
    PolicyText, Record<PipelineParameters>,
    std::function<Planned(const Problem&, const PipelineParameters&)>);

/// Throws InputError where stages may have different numbers of replicas.
void require_equal_replicas(const PipelineParameters& parameters);

/// Throws InputError where `virtual_stages` is not 1: for schedules of one stage a device.
void require_one_virtual_stage(const PipelineParameters& parameters);

/// Throws InputError where it is not 2: for schedules on a V.
void require_two_virtual_stages(const PipelineParameters& parameters);

/// The processors that the parameters name, or else all of the platform. Throws InputError where
/// one is unknown or named twice.
[[nodiscard]] std::vector<ProcessorId> all_devices(const Problem& problem,
                                                   const PipelineParameters& parameters);

/// The processors of the pipeline, in order; by default all of the platform. Of every stage with
/// replicas the first. Throws InputError where one is unknown or named twice, or the replicas are
/// not as many as the processors.
[[nodiscard]] std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                                        const PipelineParameters& parameters);

/// The replicas of each device of the pipeline, itself the first. Throws InputError likewise, and
/// where the partition would have to find them.
[[nodiscard]] std::vector<std::vector<ProcessorId>> replica_groups(
    const Problem& problem, const PipelineParameters& parameters);

/// What says how many replicas there are: for messages.
[[nodiscard]] const Location& where_replicated(const PipelineParameters& parameters);

/// Throws InputError where the plan would have more than some ten million steps.
void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters);

/// Throws InputError where no route joins the memories, which hold `what`, both ways.
void require_link(const Problem& problem, MemoryId a, MemoryId b, const char* what,
                  const Location& where);

/// Likewise of stages that follow each other, by the memories in which they run.
void require_links_of_stages(const Problem& problem, std::span<const MemoryId> by_slot,
                             const Location& where);

}  // namespace plimsoll
