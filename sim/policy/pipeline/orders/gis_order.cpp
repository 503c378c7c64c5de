#include "policy/pipeline/orders/gis_order.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The most that all devices take for a chunk.
Time longest_round(const SlotCosts& costs, Time SlotCosts::Slot::*part) {
  Time longest;
  for (std::size_t begin = 0; begin < costs.slots.size(); begin += costs.devices) {
    Time round;
    for (std::size_t s = begin; s < begin + costs.devices; ++s) round += costs.slots[s].*part;
    longest = std::max(longest, round);
  }
  return longest;
}

std::int64_t least_group(const SlotCosts& costs) {
  Time whole;
  for (const SlotCosts::Slot& it : costs.slots)
    whole = std::max(whole, it.forward + it.backward_input + it.backward_weight);
  const std::int64_t half = (std::int64_t{costs.devices} + 1) / 2;
  if (whole == Time{}) return half;
  const Time round = std::max(longest_round(costs, &SlotCosts::Slot::forward),
                              longest_round(costs, &SlotCosts::Slot::backward_input));
  return std::max(half, (round.count() + whole.count() - 1) / whole.count());
}

/// The slots of one device.
class DeviceSlots {
 public:
  DeviceSlots(const SlotCosts& costs, std::int64_t device, std::int64_t group)
      : devices_(costs.devices),
        chunks_(std::ssize(costs.slots) / costs.devices),
        device_(device),
        group_(group),
        stride_((least_group(costs) + group - 1) / group),
        wrap_(chunks_ / std::gcd(chunks_, stride_)) {}

  [[nodiscard]] std::vector<SlottedTask> tasks(std::uint32_t microbatches) const {
    using Kind = Task::Kind;
    std::vector<SlottedTask> tasks;
    for (std::uint32_t k = 0; k < microbatches; ++k)
      for (std::int64_t j = 0; j < chunks_; ++j) {
        tasks.push_back({forward(j, k), {Kind::forward, slot(j), k}});
        const std::int64_t at = backward(j, k);
        tasks.push_back({at, {Kind::backward_input, slot(chunks_ - 1 - j), k}});
        tasks.push_back({at + 1, {Kind::backward_weight, slot(chunks_ - 1 - j), k}});
      }
    std::ranges::sort(tasks, {}, &SlottedTask::slot);
    return tasks;
  }

 private:
  [[nodiscard]] std::uint32_t slot(std::int64_t chunk) const {
    return static_cast<std::uint32_t>(chunk * devices_ + device_);
  }

  /// From the first chunk to the j-th.
  [[nodiscard]] std::int64_t chunk_offset(std::int64_t j) const {
    return 3 * group_ * (stride_ * j + j / wrap_);
  }

  [[nodiscard]] std::int64_t begin_of_group(std::int64_t microbatch) const {
    return 3 * group_ * chunks_ * (microbatch / group_);
  }

  [[nodiscard]] std::int64_t forward(std::int64_t j, std::int64_t microbatch) const {
    return begin_of_group(microbatch) + chunk_offset(j) + 3 * (microbatch % group_) + device_;
  }

  [[nodiscard]] std::int64_t backward(std::int64_t j, std::int64_t microbatch) const {
    return begin_of_group(microbatch) + chunk_offset(chunks_ - 1) + device_ +
           3 * (devices_ - 1 - device_) + 1 + chunk_offset(j) + 3 * (microbatch % group_);
  }

  std::int64_t devices_, chunks_, device_, group_, stride_, wrap_;
};

}  // namespace

std::vector<std::vector<SlottedTask>> gis_tasks(const SlotCosts& costs, std::uint32_t microbatches,
                                                std::uint32_t group) {
  std::vector<std::vector<SlottedTask>> tasks;
  for (std::uint32_t i = 0; i < costs.devices; ++i)
    tasks.push_back(DeviceSlots(costs, i, group).tasks(microbatches));
  return tasks;
}

Schedule gis_schedule(const SlotCosts& costs, std::uint32_t microbatches, std::uint32_t group) {
  Schedule schedule{costs.placement, {}};
  for (const auto& tasks : gis_tasks(costs, microbatches, group)) {
    auto& order = schedule.orders.emplace_back();
    for (const SlottedTask& it : tasks) order.push_back(it.task);
  }
  return schedule;
}

std::uint32_t group_of(const GroupParameters& parameters, std::size_t devices,
                       std::size_t otherwise) {
  if (!parameters.group) return static_cast<std::uint32_t>(otherwise);
  const std::int64_t group = parameters.group->value;
  if (group > static_cast<std::int64_t>(devices))
    refuse(parameters.group->where,
           fmt::format("a group of {} is more than one microbatch for each of {} "
                       "devices",
                       group, devices));
  return static_cast<std::uint32_t>(group);
}

}  // namespace plimsoll
