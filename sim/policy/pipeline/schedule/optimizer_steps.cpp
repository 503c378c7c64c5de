#include "policy/pipeline/schedule/optimizer_steps.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace plimsoll {
namespace {

class OptimizerSteps {
 public:
  OptimizerSteps(PlanBuilder& builder, const Problem& problem,
                 const std::vector<const Slots*>& directions, const std::vector<LaneId>& streams)
      : builder_(builder),
        workload_(problem.workload),
        directions_(directions),
        streams_(streams) {}

  void run() {
    for (std::uint32_t op = workload_.optimizer_begin; op < workload_.operators.size(); ++op) {
      const auto reads = workload_.list(workload_.operators[op].reads);
      if (workload_.operators[op].collective.kind == CollectiveKind::fetch)
        for (const TensorId made : workload_.list(workload_.operators[op].kept))
          fetched_by_.emplace(made, OperatorId{op});
      else if (reads.empty())
        for (const LaneId stream : streams_) builder_.compute(stream, OperatorId{op});
      else
        run_where_read_is_made(OperatorId{op});
    }
  }

 private:
  void run_where_read_is_made(OperatorId op) {
    std::vector<MemoryId> done;
    const auto run_on = [&](const Slots& slots, std::uint32_t device, TensorId read) {
      const MemoryId memory = slots.memory(device);
      if (std::ranges::find(done, memory) != done.end() || !builder_.holds(read, 0, memory)) return;
      fetch_for(op, device, memory);
      builder_.compute(streams_[device], op);
      done.push_back(memory);
      for (const TensorList list : {workload_[op].kept, workload_[op].updates})
        for (const TensorId id : workload_.list(list)) made_[id].push_back(device);
    };
    for (const TensorId read : reads_and_fetched(op))
      for (const Slots* slots : directions_) {
        for (const std::uint32_t device : slots->makers(read)) run_on(*slots, device, read);
        if (const auto found = made_.find(read); found != made_.end())
          for (const std::uint32_t device : std::vector(found->second))
            run_on(*slots, device, read);
      }
  }

  /// What it reads, and what fetches of that read.
  [[nodiscard]] std::vector<TensorId> reads_and_fetched(OperatorId op) const {
    const auto reads = workload_.list(workload_[op].reads);
    std::vector<TensorId> all(reads.begin(), reads.end());
    for (const TensorId read : reads)
      if (const auto found = fetched_by_.find(read); found != fetched_by_.end())
        for (const TensorId fetched : workload_.list(workload_[found->second].reads))
          if (std::ranges::find(all, fetched) == all.end()) all.push_back(fetched);
    return all;
  }

  /// Where all that a fetch reads is resident, nothing says on which device it runs: its reader does.
  void fetch_for(OperatorId op, std::uint32_t device, MemoryId memory) {
    for (const TensorId read : workload_.list(workload_[op].reads))
      if (const auto found = fetched_by_.find(read);
          found != fetched_by_.end() && !builder_.holds(read, 0, memory))
        builder_.compute(streams_[device], found->second);
  }

  PlanBuilder& builder_;
  const Workload& workload_;
  const std::vector<const Slots*>& directions_;
  const std::vector<LaneId>& streams_;
  std::map<TensorId, std::vector<std::uint32_t>>
      made_;  ///< or changed, by updates, on which devices
  std::map<TensorId, OperatorId> fetched_by_;
};

}  // namespace

void add_optimizer_steps(PlanBuilder& builder, const Problem& problem,
                         const std::vector<const Slots*>& directions,
                         const std::vector<LaneId>& streams) {
  OptimizerSteps(builder, problem, directions, streams).run();
}

}  // namespace plimsoll
