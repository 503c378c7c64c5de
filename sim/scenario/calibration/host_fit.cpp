#include "scenario/calibration/host_fit.hpp"

#include "scenario/calibration/measured_times.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {
namespace {

[[noreturn]] void refuse(const Measurement& it, const std::string& message) {
  plimsoll::refuse(it.spec->where,
                   fmt::format("measurement `{}` is `host_bound`, but {}", it.spec->name, message));
}

Time step_on(const MeasurementSet& set, const Measurement& it, const Processor& processor) {
  return mean_of(it, it.parts.front(), durations_on(set, it, processor));
}

/// What the host takes for an operator, found on the steps that wait for it.
class HostFit {
 public:
  /// `processor` has all else fitted.
  HostFit(const MeasurementSet& set, const Processor& processor)
      : set_(set), processor_(processor) {
    for (const Measurement& it : set.measurements)
      if (it.spec->host_bound) bound_.push_back(&it);
  }

  [[nodiscard]] std::optional<Time> run() {
    if (bound_.empty()) return std::nullopt;
    check_they_wait();
    std::int64_t least = 0, enough = 1;
    while (!is_enough(enough)) {
      if (enough == kMost)
        refuse(*bound_.front(), "not even 100 s for each operator make it as long as measured");
      least = enough + 1;
      enough = std::min(2 * enough, kMost);
    }
    while (least < enough) {
      const std::int64_t middle = least + (enough - least) / 2;
      if (is_enough(middle))
        enough = middle;
      else
        least = middle + 1;
    }
    return Time{least * kPicosecondsPerNanosecond};
  }

 private:
  static constexpr std::int64_t kMost = 100'000'000'000;

  Time step(const Measurement& it, std::int64_t nanoseconds) {
    processor_.host_overhead = Time{nanoseconds * kPicosecondsPerNanosecond};
    return step_on(set_, it, processor_);
  }

  void check_they_wait() {
    for (const Measurement* it : bound_)
      if (const Time alone = step(*it, 0); alone >= it->parts.front().time)
        refuse(*it, fmt::format("took {}, and its operators alone take the processor {}",
                                to_text(it->parts.front().time), to_text(alone)));
  }

  /// Whether the mean of log(ours / t) is at least 0.
  bool is_enough(std::int64_t nanoseconds) {
    double sum = 0;
    for (const Measurement* it : bound_)
      sum +=
          std::log(in_picoseconds(step(*it, nanoseconds)) / in_picoseconds(it->parts.front().time));
    return sum >= 0;
  }

  const MeasurementSet& set_;
  Processor processor_;
  std::vector<const Measurement*> bound_;
};

}  // namespace

Time wait_for_host(const MeasurementSet& set, const Measurement& it, const Processor& processor) {
  if (processor.host_overhead == Time{} || !it.spec->is_step()) return {};
  Processor alone = processor;
  alone.host_overhead = Time{};
  return step_on(set, it, processor) - step_on(set, it, alone);
}

std::vector<Time> waits_for_host(const MeasurementSet& set, const Processor& processor) {
  std::vector<Time> waits;
  for (const Measurement& it : set.measurements)
    waits.push_back(it.is_test ? Time{} : wait_for_host(set, it, processor));
  return waits;
}

std::optional<Time> fit_host_overhead(const MeasurementSet& set, const Processor& processor) {
  return HostFit(set, processor).run();
}

}  // namespace plimsoll
