#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/one_f_one_b.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <set>

namespace plimsoll {

namespace {

/// Adds to the order of 1F1B what leaves a device for its partner, and comes back, so that the
/// device never holds more than `most` microbatches. What leaves is the newest, whose backward is
/// last; it goes while a backward runs, and what the next backward needs comes back during the
/// forward between them.
class Balancer {
 public:
  Balancer(const std::vector<Task>& order, std::size_t most) : order_(order), most_(most) {}

  std::vector<Task> run() && {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Task& task = order_[i];
      if (task.kind == Task::Kind::forward) {
        make_room(1);
        balanced_.push_back(task);
        here_.insert(task.microbatch);
        continue;
      }
      const bool forward_next = i + 1 < order_.size() && order_[i + 1].kind == Task::Kind::forward;
      const bool fetch_next = away_.contains(task.microbatch + 1);
      here_.erase(task.microbatch);
      make_room(std::size_t{forward_next} + std::size_t{fetch_next});
      balanced_.push_back(task);
      if (fetch_next) fetch({Task::Kind::fetch, task.slot, task.microbatch + 1});
    }
    return std::move(balanced_);
  }

 private:
  void make_room(std::size_t microbatches) {
    while (here_.size() + microbatches > most_) {
      const std::uint32_t newest = *here_.rbegin();
      here_.erase(newest);
      away_.insert(newest);
      balanced_.push_back({Task::Kind::evict, order_.front().slot, newest});
    }
  }

  void fetch(const Task& task) {
    away_.erase(task.microbatch);
    here_.insert(task.microbatch);
    balanced_.push_back(task);
  }

  const std::vector<Task>& order_;
  const std::size_t most_;
  std::set<std::uint32_t> here_, away_;
  std::vector<Task> balanced_;
};

/// Device i and p-1-i are partners; none is to hold more than ceil((p+2)/2) microbatches.
Schedule bpipe(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t) {
  Schedule schedule = one_f_one_b(devices, microbatches, 1);
  const std::uint32_t most = (devices + 3) / 2;
  for (std::uint32_t i = 0; i < devices; ++i) {
    schedule.partners.push_back(devices - 1 - i);
    if (devices - i <= most) continue;
    schedule.orders[i] = Balancer(schedule.orders[i], most).run();
  }
  return schedule;
}

Planned plan_bpipe(const Problem& problem, const PipelineParameters& parameters) {
  require_one_virtual_stage(parameters);
  return plan_pipeline(problem, parameters, bpipe);
}

}  // namespace

PolicyInfo pipeline_bpipe_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/bpipe",
       .summary =
           "1F1B whose first devices keep some of their activations in the last ones' memory.",
       .paper = "Kim et al. 2023, \"BPipe: Memory-Balanced Pipeline Parallelism for Training Large "
                "Language Models\", ICML; as reconstructed: device i and p-1-i are partners, the "
                "bound is ceil((p+2)/2) microbatches, the newest one leaves, whole, and comes back "
                "during the forward before its backward",
       .assumes = "one stage a device; a backward that is not split; links on which copies between "
                  "partners hide behind forwards and backwards",
       .guarantees =
           "no device keeps more than ceil((p+2)/2) microbatches, including those of its partner; "
           "on equal stages the makespan of 1F1B, if copying what a microbatch keeps takes no "
           "longer than its forward or backward and nothing else delays it",
       .complexity = "O(microbatches x operators)"},
      pipeline_record("pipeline/bpipe"), plan_bpipe);
}

}  // namespace plimsoll
