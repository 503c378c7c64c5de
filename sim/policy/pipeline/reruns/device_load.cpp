#include "policy/pipeline/reruns/device_load.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

using Kind = Task::Kind;

class LoadCounter {
 public:
  std::vector<DeviceLoad> run(std::span<const Task> order) {
    for (const Task& task : order) {
      leave(task);
      note(task);
      enter(task);
    }
    std::ranges::sort(loads_);
    const auto rest = std::ranges::unique(loads_);
    loads_.erase(rest.begin(), rest.end());
    return std::move(loads_);
  }

 private:
  SlotCounts& of(std::uint32_t slot) {
    const auto place = std::ranges::lower_bound(counts_, slot, {}, &SlotCounts::slot);
    if (place != counts_.end() && place->slot == slot) return *place;
    return *counts_.insert(place, SlotCounts{slot});
  }

  void leave(const Task& task) {
    if (task.kind == Kind::backward || task.kind == Kind::backward_input) --of(task.slot).kept;
    if (task.kind == Kind::backward_weight) --of(task.slot).held;
  }

  void enter(const Task& task) {
    if (task.kind == Kind::forward) ++of(task.slot).kept;
    if (task.kind == Kind::backward_input) ++of(task.slot).held;
  }

  void note(const Task& task) {
    const bool computes = task.kind == Kind::forward || task.kind == Kind::backward ||
                          task.kind == Kind::backward_input || task.kind == Kind::backward_weight;
    if (!computes) return;
    DeviceLoad load{task.slot, {}};
    std::ranges::copy_if(counts_, std::back_inserter(load.others),
                         [](const SlotCounts& it) { return it.kept + it.held > 0; });
    loads_.push_back(std::move(load));
  }

  std::vector<SlotCounts> counts_;  ///< by slot
  std::vector<DeviceLoad> loads_;
};

}  // namespace

std::vector<DeviceLoad> device_loads(std::span<const Task> order) {
  return LoadCounter().run(order);
}

bool runs_slot(std::span<const DeviceLoad> loads, std::uint32_t slot) {
  return std::ranges::find(loads, slot, &DeviceLoad::slot) != loads.end();
}

}  // namespace plimsoll
