/// What a run adds up to that repeats often what a shorter one repeats seldom: each repetition adds to every sum what one
/// repetition more has added to that of a short run.
#pragma once

#include "execution/step_sums.hpp"
#include "plan/core/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

/// What becomes of a sum that was `few`, then `more` with one repetition, after `times` more of them.
template <class T>
[[nodiscard]] T further(T few, T more, std::uint32_t times) {
  return static_cast<T>(more + (more - few) * static_cast<std::int64_t>(times));
}
[[nodiscard]] inline std::uint64_t further(std::uint64_t few, std::uint64_t more,
                                           std::uint32_t times) {
  return more + (more - few) * times;
}

class Extrapolation {
 public:
  /// `added` is what each memory holds more with one repetition more: throughout, or at the end.
  Extrapolation(std::uint32_t times, std::vector<Bytes> added)
      : times_(times), added_(std::move(added)) {}

  /// Whether all that had to stay the same did, and there was nothing else.
  [[nodiscard]] bool holds() const { return holds_; }

  ExecutionSums of(const ExecutionSums& few, ExecutionSums more) {
    same(few.status, more.status);
    same(few.waited_for_memory, more.waited_for_memory);
    same(few.peak_power, more.peak_power);
    grow(few.events, more.events);
    grow(few.tries, more.tries);
    grow(few.makespan, more.makespan);
    grow(few.period, more.period);
    each(few.memories, more.memories,
         [&, m = std::size_t{0}](const auto& a, auto& b) mutable { memory(a, b, added_[m++]); });
    each(few.processors, more.processors, [&](const auto& a, auto& b) { processor(a, b); });
    each(few.ports, more.ports, [&](const auto& a, auto& b) {
      grow(a.bytes, b.bytes);
      grow(a.busy, b.busy);
    });
    grow_each(few.link_busy, more.link_busy);
    grow_each(few.processor_operator_energy, more.processor_operator_energy);
    return more;
  }

  StepSums of(const StepSums& few, StepSums more) {
    grow_each(few.worn, more.worn);
    each(few.processors, more.processors, [&](const auto& a, auto& b) {
      grow(a.recomputed_ops, b.recomputed_ops);
      grow(a.recomputed_flops, b.recomputed_flops);
      grow(a.recomputed_products, b.recomputed_products);
      grow(a.reach, b.reach);
      grow_each(a.drawn, b.drawn);
    });
    each(few.collectives, more.collectives, [&](const auto& a, auto& b) {
      same(a.name, b.name);
      same(a.memory, b.memory);
      grow(a.bytes, b.bytes);
      grow(a.busy, b.busy);
      grow(a.exposed, b.exposed);
    });
    return more;
  }

  /// Of claims what a run shows; there must be no others.
  Claims of(const Claims& few, Claims more) {
    grow_known(few.makespan, more.makespan);
    grow_known(few.period, more.period);
    grow_known(few.energy, more.energy);
    same(few.in_flight, more.in_flight);
    each(few.peak, more.peak, [&](const auto& a, auto& b) {
      same(a.first, b.first);
      grow_by(added_[index(a.first)], a.second, b.second);
    });
    for (const Claims* claims : {&few, &std::as_const(more)})
      holds_ = holds_ && !claims->model_makespan && !claims->model_period &&
               claims->model_peak.empty() && !claims->optimal && !claims->eviction;
    return more;
  }

  /// A bound that is the greatest of sums grows at least as it did.
  Bounds of(const Bounds& few, Bounds more) {
    grow_known(few.makespan, more.makespan);
    for (const Bounds* bounds : {&few, &std::as_const(more)})
      holds_ = holds_ && !bounds->period && !bounds->energy && bounds->peak.empty();
    return more;
  }

 private:
  template <class T>
  void grow(const T& few, T& more) {
    more = further(few, more, times_);
  }

  /// What is there throughout adds to the peak, wherever that is. What stays adds to one that comes late; where one
  /// that comes early is greater still, nobody knows how long, so the peak must have grown by all of it.
  void memory(const MemoryRecord& few, MemoryRecord& more, Bytes added) {
    grow_by(added, few.peak.requested, more.peak.requested);
    grow_by(added, few.peak.allocated, more.peak.allocated);
    grow_by(added, few.peak.reserved, more.peak.reserved);
    grow_each(few.at_peak, more.at_peak);
    grow_each(few.at_end, more.at_end);
    grow(few.peak_time, more.peak_time);
    grow(few.bytes_written, more.bytes_written);
    grow(few.bytes_read, more.bytes_read);
    grow(few.busy, more.busy);
  }

  void processor(const ProcessorRecord& few, ProcessorRecord& more) {
    same(few.first_start, more.first_start);
    grow(few.busy, more.busy);
    grow(few.powered, more.powered);
    grow(few.slept, more.slept);
    grow(few.energy_at_work, more.energy_at_work);
    grow(few.last_end, more.last_end);
    grow_each(few.stall, more.stall);
    grow(few.operators, more.operators);
  }

  void grow_by(Bytes added, const Bytes& few, Bytes& more) {
    same(few + added, more);
    grow(few, more);
  }

  template <class T>
  void same(const T& few, const T& more) {
    holds_ = holds_ && few == more;
  }

  template <class T>
  void grow_known(const std::optional<T>& few, std::optional<T>& more) {
    same(few.has_value(), more.has_value());
    if (few && more) grow(*few, *more);
  }

  template <class All, class Visit>
  void each(const All& few, All& more, Visit visit) {
    same(few.size(), more.size());
    if (!holds_) return;
    for (std::size_t i = 0; i < more.size(); ++i) visit(few[i], more[i]);
  }

  template <class All>
  void grow_each(const All& few, All& more) {
    each(few, more, [&](const auto& a, auto& b) { grow(a, b); });
  }

  std::uint32_t times_;
  std::vector<Bytes> added_;  ///< by memory
  bool holds_ = true;
};

}  // namespace plimsoll
