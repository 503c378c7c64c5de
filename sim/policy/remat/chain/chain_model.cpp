#include "policy/remat/chain/chain_model.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace plimsoll {
namespace {

/// The running sum of `of` from place 1 on.
std::vector<std::int64_t> sums(const std::vector<std::int64_t>& of) {
  std::vector<std::int64_t> sum(of.size(), 0);
  for (std::size_t i = 1; i < of.size(); ++i) sum[i] = sum[i - 1] + of[i];
  return sum;
}

}  // namespace

bool has_normal_form(const ChainCosts& costs) {
  return std::ranges::all_of(costs.stages, [](const StageCosts& stage) {
    return stage.output + stage.bare_workspace <= stage.saved + stage.keep_workspace;
  });
}

ChainModel chain_model(const ChainCosts& costs) {
  assert(has_normal_form(costs));
  ChainModel model;
  model.stages = static_cast<std::uint32_t>(costs.stages.size());
  model.work = costs.work;
  (void)costs.compute_time();  // the sum is in range
  Bytes all = costs.resident + costs.input_gradient + costs.optimizer_workspace;
  for (auto* numbers :
       {&model.forward, &model.backward, &model.output, &model.saved, &model.keep_workspace,
        &model.bare_workspace, &model.backward_workspace, &model.lasting, &model.gone_in_backward})
    numbers->push_back(0);
  model.gradient.push_back(costs.input_gradient.count());
  for (const StageCosts& stage : costs.stages) {
    all += 2 * stage.saved + stage.gradient + stage.keep_workspace + stage.bare_workspace +
           stage.backward_workspace + stage.lasting;
    model.forward.push_back(stage.forward.count());
    model.backward.push_back(stage.backward.count());
    model.output.push_back(stage.output.count());
    model.saved.push_back(stage.saved.count());
    model.gradient.push_back(stage.gradient.count());
    model.keep_workspace.push_back(stage.keep_workspace.count());
    model.bare_workspace.push_back(stage.bare_workspace.count());
    model.backward_workspace.push_back(stage.backward_workspace.count());
    model.lasting.push_back(stage.lasting.count());
  }
  for (std::uint32_t s = 0; s < model.stages; ++s)
    model.gone_in_backward.push_back(costs.gone_in_backward(s).count());
  model.lasting_after.assign(model.stages + 1, 0);
  for (std::uint32_t i = model.stages; i > 0; --i)
    model.lasting_after[i - 1] = model.lasting_after[i] + model.lasting[i];
  model.forward_before = sums(model.forward);
  model.backward_before = sums(model.backward);
  model.resident = costs.resident.count();
  model.after = costs.optimizer.count();
  model.after_need = model.resident + model.gradient[0] + model.lasting_after[0] +
                     costs.optimizer_workspace.count();
  model.store_all = all.count();
  return model;
}

std::int64_t necessary_budget(const ChainModel& model) {
  std::int64_t most = model.after_need;
  for (std::uint32_t i = 1; i <= model.stages; ++i) {
    const std::int64_t input = model.output[i - 1];
    most = std::max(most, model.backward_need(i) + input);
    most = std::max(most,
                    model.fixed(model.stages) + input + model.output[i] + model.bare_workspace[i]);
    std::int64_t leanest = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t d = i; d <= model.stages; ++d) leanest = std::min(leanest, model.fixed(d));
    most = std::max(most, leanest + input + model.saved[i] + model.keep_workspace[i]);
  }
  return most;
}

}  // namespace plimsoll
