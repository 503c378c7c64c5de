#include "plan/build/gradient_buckets.hpp"

#include "base/dense_id.hpp"
#include "plan/core/readers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace plimsoll {
namespace {

/// Where microbatches accumulate, gradients are there throughout
/// (workload/cost/gradient_accumulation.hpp).
bool is_gradient_of_parameter(const Tensor& tensor) {
  return tensor.lifetime == Lifetime::accumulated ||
         (tensor.lifetime == Lifetime::resident && tensor.tensor_class == TensorClass::gradient);
}

class Buckets {
 public:
  Buckets(const Plan& plan, const Workload& workload, const Spreading& spreading)
      : plan_(plan), workload_(workload), spreading_(spreading), last_in_lanes_(plan) {}

  std::vector<GradientBucket> run() {
    find_uses();
    if (spreading_.of_gradients != CollectiveKind::none)
      fill(gradients_, spreading_.of_gradients, spreading_.first_bucket);
    sum_partial();
    if (spreading_.gathers_parameters)
      fill(parameters_, CollectiveKind::all_gather, spreading_.bucket);
    std::ranges::stable_sort(buckets_, {}, &GradientBucket::after_step);
    return std::move(buckets_);
  }

 private:
  struct Uses {
    std::vector<StepId> steps;  ///< those that are waited for
    StepId last = kNoStep;      ///< the last change
  };
  using ByBuffer = std::map<std::uint32_t, Uses>;

  [[nodiscard]] bool updates(const Step& step) const {
    return step.kind == StepKind::compute && workload_[step.op].phase == Phase::optimizer;
  }

  void find_uses() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      for (const Slice slice : {step.reads, step.writes})
        for (const BufferId id : plan_.list(slice)) note(id, StepId{s});
    }
  }

  void note(BufferId id, StepId s) {
    const Tensor& tensor = workload_[plan_[id].tensor];
    if (tensor.home != Home::processor) return;
    const bool is_update = updates(plan_[s]);
    if (is_gradient_of_parameter(tensor)) {
      Uses& uses = gradients_[index(id)];
      if (!is_update && has_ended_.contains(index(id)))
        throw std::invalid_argument("a plan of policy `" + plan_.policy +
                                    "` goes on with its backwards after an update, and cannot be "
                                    "spread over ranks");
      if (is_update) return void(has_ended_.insert(index(id)));
      uses.steps.push_back(s);
      uses.last = s;
    } else if (tensor.tensor_class == TensorClass::parameter && !tensor.is_whole &&
               tensor.lifetime == Lifetime::resident) {
      Uses& uses = parameters_[index(id)];
      uses.steps.push_back(s);
      if (is_update) uses.last = s;
    }
  }

  [[nodiscard]] bool is_of_experts(BufferId id) const {
    return workload_[plan_[id].tensor].is_of_experts;
  }

  /// What shares no bucket with others.
  [[nodiscard]] std::pair<MemoryId, bool> kind_of(BufferId id) const {
    return {plan_[id].memory, is_of_experts(id)};
  }

  /// The buffers that change, by memory, experts' or not, and last change.
  [[nodiscard]] std::vector<BufferId> in_order(const ByBuffer& all) const {
    std::vector<BufferId> order;
    for (const auto& [id, uses] : all)
      if (uses.last != kNoStep) order.push_back(BufferId{id});
    std::ranges::stable_sort(
        order, {}, [&](BufferId id) { return std::pair(kind_of(id), all.at(index(id)).last); });
    return order;
  }

  void fill(const ByBuffer& all, CollectiveKind kind, Bytes first) {
    const std::vector<BufferId> order = in_order(all);
    Bytes held, most = first;
    std::vector<BufferId> filled;
    for (std::size_t i = 0; i < order.size(); ++i) {
      filled.push_back(order[i]);
      held += workload_[plan_[order[i]].tensor].bytes;
      const bool is_last = i + 1 == order.size() || kind_of(order[i + 1]) != kind_of(order[i]);
      if (!is_last && !(spreading_.overlap && held >= most)) continue;
      add_bucket(all, {kind, MeshAxis::data, is_of_experts(order[i])}, std::exchange(filled, {}));
      held = Bytes{};
      most = is_last ? first : spreading_.bucket;
    }
  }

  void sum_partial() {
    std::map<MemoryId, std::vector<BufferId>> by_memory;
    for (const BufferId id : in_order(gradients_))
      if (workload_[plan_[id].tensor].is_partial) by_memory[plan_[id].memory].push_back(id);
    for (auto& [memory, buffers] : by_memory)
      add_bucket(gradients_, {CollectiveKind::all_reduce, MeshAxis::tensor}, std::move(buffers));
  }

  void add_bucket(const ByBuffer& all, const Collective& collective,
                  std::vector<BufferId> buffers) {
    std::vector<StepId> users;
    for (const BufferId id : buffers) {
      const std::vector<StepId>& steps = all.at(index(id)).steps;
      users.insert(users.end(), steps.begin(), steps.end());
    }
    std::ranges::sort(users);
    users.erase(std::ranges::unique(users).begin(), users.end());
    const auto last = last_in_lanes_.of(users);
    GradientBucket& bucket = buckets_.emplace_back();
    bucket.collective = collective;
    bucket.memory = plan_[buffers.front()].memory;
    bucket.buffers = std::move(buffers);
    bucket.users.assign(last.begin(), last.end());
    bucket.after_step = users.back();
  }

  const Plan& plan_;
  const Workload& workload_;
  const Spreading& spreading_;
  LastInLanes last_in_lanes_;
  ByBuffer gradients_, parameters_;
  std::set<std::uint32_t> has_ended_;  ///< gradients that an update has read
  std::vector<GradientBucket> buckets_;
};

}  // namespace

std::vector<GradientBucket> buckets_of(const Plan& plan, const Workload& workload,
                                       const Spreading& spreading) {
  return Buckets(plan, workload, spreading).run();
}

}  // namespace plimsoll
