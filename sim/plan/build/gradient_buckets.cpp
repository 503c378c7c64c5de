#include "plan/build/gradient_buckets.hpp"

#include "base/dense_id.hpp"
#include "plan/core/readers.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>
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
      : plan_(plan),
        workload_(workload),
        spreading_(spreading),
        last_in_lanes_(plan),
        gradients_(plan.buffers.size()),
        parameters_(plan.buffers.size()),
        has_ended_(plan.buffers.size(), false) {}

  std::vector<GradientBucket> run() {
    find_uses();
    if (spreading_.of_gradients != CollectiveKind::none)
      fill(gradients_, spreading_.of_gradients, spreading_.first_bucket);
    else if (spreading_.has_copies())
      reduce_parts();
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
  /// Of the buffers that have any.
  class ByBuffer {
   public:
    explicit ByBuffer(std::size_t buffers) : place_(buffers, kNone) {}

    Uses& operator[](BufferId id) {
      std::uint32_t& place = place_[index(id)];
      if (place == kNone) {
        place = static_cast<std::uint32_t>(uses_.size());
        uses_.emplace_back();
        buffers_.push_back(id);
      }
      return uses_[place];
    }
    [[nodiscard]] const Uses& at(BufferId id) const { return uses_[place_[index(id)]]; }
    [[nodiscard]] const std::vector<BufferId>& buffers() const { return buffers_; }

   private:
    std::vector<std::uint32_t> place_;  ///< by buffer
    std::vector<BufferId> buffers_;     ///< in the order of their first use
    std::vector<Uses> uses_;            ///< of these
  };

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
      Uses& uses = gradients_[id];
      if (!is_update && has_ended_[index(id)])
        throw std::invalid_argument("a plan of policy `" + plan_.policy +
                                    "` goes on with its backwards after an update, and cannot be "
                                    "spread over ranks");
      if (is_update) {
        has_ended_[index(id)] = true;
        return;
      }
      uses.steps.push_back(s);
      uses.last = s;
    } else if (tensor.tensor_class == TensorClass::parameter && !tensor.is_whole &&
               tensor.lifetime == Lifetime::resident) {
      Uses& uses = parameters_[id];
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
    std::ranges::copy_if(all.buffers(), std::back_inserter(order),
                         [&](BufferId id) { return all.at(id).last != kNoStep; });
    std::ranges::sort(order, {},
                      [&](BufferId id) { return std::tuple(kind_of(id), all.at(id).last, id); });
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

  /// Of gradients that ranks hold in parts already: what is complete with the same step, or all.
  void reduce_parts() {
    const std::vector<BufferId> order = in_order(gradients_);
    std::vector<BufferId> parts;
    for (std::size_t i = 0; i < order.size(); ++i) {
      parts.push_back(order[i]);
      const auto goes_with = [&](BufferId next) {
        return plan_[next].memory == plan_[order[i]].memory &&
               (!spreading_.overlap || gradients_.at(next).last == gradients_.at(order[i]).last);
      };
      if (i + 1 == order.size() || !goes_with(order[i + 1]))
        add_bucket(gradients_, {CollectiveKind::all_reduce, MeshAxis::replica},
                   std::exchange(parts, {}));
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
      const std::vector<StepId>& steps = all.at(id).steps;
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
  std::vector<bool> has_ended_;  ///< by buffer: gradients that an update has read
  std::vector<GradientBucket> buckets_;
};

}  // namespace

std::vector<GradientBucket> buckets_of(const Plan& plan, const Workload& workload,
                                       const Spreading& spreading) {
  return Buckets(plan, workload, spreading).run();
}

}  // namespace plimsoll
