#include "report/trace/trace.hpp"

#include "base/whole_file.hpp"
#include "plan/core/plan.hpp"
#include "report/run/json_report.hpp"
#include "report/series/series.hpp"
#include "report/trace/trace_sink.hpp"
#include "scenario/run/failure_words.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// A slice begins or ends. At one instant first end those that last, then come those of no
/// duration, then those that last begin; each kind in issue order.
struct Moment {
  enum class Part : std::uint8_t { end, both, begin };
  Time time;
  Part part = Part::both;
  std::uint32_t step = 0;
  std::uint32_t track = 0, slice = 0;

  bool operator<(const Moment& other) const {
    return std::tie(time, part, step, track) <
           std::tie(other.time, other.part, other.step, other.track);
  }
};

/// Ids of flows by the copy that they begin at.
class Flows {
 public:
  /// Ids from `base` + 1 on, at most one a step.
  Flows(const Program& program, const Execution& execution, std::uint64_t base) : base_(base) {
    for (std::uint32_t s = 0; s + 1 < program.steps.size(); ++s) {
      if (!is_drawn(program, execution, s)) continue;
      const std::uint32_t maker = program.steps[s].source_maker;
      if (maker != kNone && is_drawn(program, execution, maker)) pairs_.emplace_back(maker, s);
    }
    std::ranges::sort(pairs_);
    for (const auto& [from, to] : pairs_) out_.push_back(base_ + to + 1);
    for (const auto& [from, to] : pairs_) ends_.push_back(to);
    std::ranges::sort(ends_);
  }

  [[nodiscard]] std::span<const std::uint64_t> out_of(std::uint32_t step) const {
    const auto range =
        std::ranges::equal_range(pairs_, step, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    return std::span(out_).subspan(static_cast<std::size_t>(range.begin() - pairs_.begin()),
                                   range.size());
  }
  [[nodiscard]] std::optional<std::uint64_t> into(std::uint32_t step) const {
    if (!std::ranges::binary_search(ends_, step)) return std::nullopt;
    return base_ + step + 1;
  }

 private:
  /// Whether a step is a copy over a link that began.
  static bool is_drawn(const Program& program, const Execution& execution, std::uint32_t step) {
    const ProgramStep& it = program.steps[step];
    return is_move(it.kind) && !program.lanes[it.lane].hops.empty() &&
           !execution.start[step].is_unlimited();
  }

  std::uint64_t base_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      pairs_;                        ///< a copy, and one of what it brought
  std::vector<std::uint64_t> out_;   ///< as pairs_
  std::vector<std::uint32_t> ends_;  ///< sorted
};

class RunTrace {
 public:
  RunTrace(const TracedRun& run, TrackId& next_track, std::uint64_t& next_flow, TraceSink& sink)
      : platform_(run.platform),
        result_(run.result),
        next_track_(next_track),
        next_flow_(next_flow),
        sink_(sink) {}

  void write() {
    run_ = next_track_++;
    const std::string status = status_text(result_);
    sink_.run(run_, fmt::format("{}: {}{}", result_.scenario, label_of(result_),
                                status == "ok" ? "" : fmt::format(" ({})", status)));
    if (result_.infeasible) return sink_.instant(run_, Time{}, failure_in_words(result_));
    const Topology topology(platform_);
    const Program program = lower(result_.plan, result_.workload_as_run, platform_, topology);
    const Recording recording = record(program);
    write_slices(program, recording);
    write_memories(recording);
    write_power(program, recording);
    if (const std::string failure = failure_in_words(result_); !failure.empty())
      sink_.instant(run_, result_.execution.makespan, failure);
  }

 private:
  void write_slices(const Program& program, const Recording& recording) {
    const std::vector<Track> tracks = tracks_of(program, recording);
    const Flows flows(program, result_.execution, next_flow_);
    next_flow_ += program.steps.size();
    std::vector<TrackId> ids;  // of the first row of each track
    for (const Track& track : tracks) {
      ids.push_back(next_track_);
      for (std::uint32_t row = 0; row < track.rows; ++row)
        sink_.slices(next_track_++, run_,
                     row == 0 ? track.name : fmt::format("{} #{}", track.name, row + 1));
    }
    for (const Moment& moment : moments_of(tracks)) {
      const Track& track = tracks[moment.track];
      const TrackSlice& slice = track.slices[moment.slice];
      write_slice(program, slice, moment.part, ids[moment.track] + slice.row,
                  is_first_hop(program, track, moment.step) ? &flows : nullptr);
    }
  }

  static std::vector<Moment> moments_of(const std::vector<Track>& tracks) {
    std::vector<Moment> moments;
    for (std::uint32_t t = 0; t < tracks.size(); ++t)
      for (std::uint32_t s = 0; s < tracks[t].slices.size(); ++s) {
        const TrackSlice& slice = tracks[t].slices[s];
        const std::uint32_t step = index(slice.step);
        if (slice.start == slice.end) {
          moments.push_back({slice.start, Moment::Part::both, step, t, s});
          continue;
        }
        moments.push_back({slice.start, Moment::Part::begin, step, t, s});
        moments.push_back({slice.end, Moment::Part::end, step, t, s});
      }
    std::sort(moments.begin(), moments.end());
    return moments;
  }

  /// A copy over several links has a slice on each; its flows are with the first.
  static bool is_first_hop(const Program& program, const Track& track, std::uint32_t step) {
    if (track.kind != Track::Kind::link) return false;
    const Hop& first = program.lanes[program.steps[step].lane].hops.front();
    return first.link == track.link && first.direction == track.direction;
  }

  void write_slice(const Program& program, const TrackSlice& it, Moment::Part part, TrackId track,
                   const Flows* flows) {
    const std::uint32_t step = index(it.step);
    TraceSlice slice{.category = to_text(it.kind), .start = it.start, .end = it.end};
    if (part == Moment::Part::end) return sink_.end(track, slice);
    slice.name = name_of(it);
    if (is_move(program.steps[step].kind)) slice.moved = program.transferred(step);
    std::uint64_t flow_in = 0;
    if (flows != nullptr) {
      slice.flows_out = flows->out_of(step);
      if (const auto flow = flows->into(step)) {
        flow_in = *flow;
        slice.flows_in = {&flow_in, 1};
      }
    }
    sink_.begin(track, slice);
    if (part == Moment::Part::both) sink_.end(track, slice);
  }

  /// The viewer chooses colours by name, so the kind of a copy is in it: "prefetch saved_3".
  [[nodiscard]] std::string name_of(const TrackSlice& slice) const {
    const Plan& plan = result_.plan;
    const Step& step = plan[slice.step];
    if (step.kind != StepKind::copy)
      return describe(plan, slice.step, result_.workload_as_run, platform_);
    const Buffer& buffer = plan[plan.list(step.writes).front()];
    std::string name =
        fmt::format("{} {}", to_text(slice.kind), result_.workload_as_run[buffer.tensor].name);
    if (plan.microbatches > plan.replicas)
      name += fmt::format(" of microbatch {}", plan.of_replica(buffer.microbatch));
    return name;
  }

  void write_memories(const Recording& recording) {
    const auto& all = recording.memories;
    for (std::uint32_t m = 0; m < platform_.memories.size(); ++m) {
      if (platform_.memories[m].is_switch) continue;
      const auto series = std::ranges::find(all, MemoryId{m}, &MemorySeries::memory);
      write_memory(MemoryId{m}, series == all.end() ? std::span<const MemoryPoint>{}
                                                    : std::span(series->points));
    }
  }

  void write_memory(MemoryId id, std::span<const MemoryPoint> points) {
    const Memory& memory = platform_[id];
    const TrackId group = next_track_++;
    sink_.group(group, run_, memory.name);
    const auto add = [&](const std::string& what) {
      sink_.counter(next_track_, run_, group, fmt::format("{}: {}", memory.name, what),
                    CounterUnit::bytes);
      return next_track_++;
    };
    write_limits(id, add);
    const auto requested = [](const MemoryPoint& point) { return point.use.requested; };
    const auto allocated = [](const MemoryPoint& point) { return point.use.allocated; };
    const auto held = [](const MemoryPoint& point) { return point.use.reserved; };
    const auto differ = [&](auto one, auto other) {
      return std::ranges::any_of(points, [&](const auto& it) { return one(it) != other(it); });
    };
    write_counter(add("in use"), points, requested);
    if (differ(allocated, requested)) write_counter(add("allocated"), points, allocated);
    if (differ(held, allocated)) write_counter(add("held"), points, held);
    for (std::size_t c = 0; c < kTensorClasses; ++c) {
      const auto alive = [c](const MemoryPoint& point) { return point.alive[c]; };
      if (std::ranges::all_of(points, [&](const auto& it) { return alive(it) == Bytes{}; }))
        continue;
      write_counter(add(to_text(static_cast<TensorClass>(c))), points, alive);
    }
  }

  /// Each only where it is less than the one before.
  void write_limits(MemoryId id, auto add) {
    Bytes least = Bytes::unlimited();
    const auto limit = [&](const char* what, Bytes bytes) {
      if (bytes >= least) return;
      least = bytes;
      const TrackId counter = add(what);
      sink_.set(counter, Time{}, bytes);
      sink_.set(counter, result_.execution.makespan, bytes);
    };
    limit("capacity", platform_[id].capacity);
    limit("usable", platform_[id].usable());
    limit("budget", budget_of(result_, id).value_or(usable(result_.plan, platform_, id)));
  }

  /// From 0 on, at every change, and at the end.
  void write_counter(TrackId counter, std::span<const MemoryPoint> points, auto value_of) {
    Bytes last;
    if (points.empty() || points.front().time > Time{}) sink_.set(counter, Time{}, last);
    bool first = true;
    for (const MemoryPoint& point : points) {
      const Bytes value = std::invoke(value_of, point);
      if (first || value != last) sink_.set(counter, point.time, value);
      first = false;
      last = value;
    }
    sink_.set(counter, result_.execution.makespan, last);
  }

  void write_power(const Program& program, const Recording& recording) {
    const std::vector<PowerPoint> points = power_series(program, recording);
    if (points.empty()) return;
    const TrackId group = next_track_++;
    sink_.group(group, run_, "power");
    const TrackId drawn = next_track_++;
    sink_.counter(drawn, run_, group, "power", CounterUnit::watts);
    for (const PowerPoint& point : points) sink_.set(drawn, point.time, point.drawn);
  }

  const Platform& platform_;
  const RunResult& result_;
  TrackId& next_track_;
  std::uint64_t& next_flow_;
  TraceSink& sink_;
  TrackId run_ = 0;
};

}  // namespace

void trace(std::span<const TracedRun> runs, TraceSink& sink) {
  TrackId next_track = 1;
  std::uint64_t next_flow = 0;
  for (const TracedRun& run : runs) RunTrace(run, next_track, next_flow, sink).write();
  sink.finish();
}

void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path) {
  WholeFile file(path);
  const auto sink =
      path.extension() == ".json" ? chrome_sink(file.stream()) : perfetto_sink(file.stream());
  trace(runs, *sink);
  file.done();
}

}  // namespace plimsoll
