#include "report/series/series.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// What cleared a step last: until then it waited.
struct Clearing {
  Time at;
  std::uint32_t by = kNone;
};

/// Who cleared each step, by the edges of the program. Of several at one instant it is the one that
/// the engine follows last: starts come after ends, ends in the order in which their steps started.
class Clearings {
 public:
  Clearings(const Program& program, const Execution& execution)
      : program_(program), execution_(execution), all_(program.plan->steps.size()) {
    for (std::uint32_t s = 0; s < all_.size(); ++s) {
      const ProgramStep& step = program_.steps[s];
      const std::uint32_t last = program_.steps[s + 1].start_edges;
      for (std::uint32_t e = step.start_edges; e < step.end_edges; ++e)
        clear(program_.edges[e], s, execution_.start[s]);
      for (std::uint32_t e = step.end_edges; e < last; ++e)
        clear(program_.edges[e], s, execution_.end[s]);
      if (step.next_in_lane != kNone) clear(step.next_in_lane, s, execution_.end[s]);
    }
  }

  [[nodiscard]] const Clearing& of(std::uint32_t step) const { return all_[step]; }

 private:
  void clear(std::uint32_t edge, std::uint32_t by, Time at) {
    if ((edge & kReleaseBit) != 0) return;
    Clearing& it = all_[edge];
    if (it.by == kNone || key(at, by) > key(it.at, it.by)) it = {at, by};
  }
  [[nodiscard]] std::tuple<Time, Time, std::uint32_t> key(Time at, std::uint32_t by) const {
    return {at, execution_.start[by], by};
  }

  const Program& program_;
  const Execution& execution_;
  std::vector<Clearing> all_;
};

class Tracks {
 public:
  Tracks(const Program& program, const Execution& execution)
      : program_(program),
        plan_(*program.plan),
        platform_(*program.platform),
        execution_(execution),
        clearings_(program, execution) {}

  std::vector<Track> run() {
    mark_recomputations();
    std::vector<Track> streams(program_.lanes.size()), links(2 * platform_.links.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (execution_.start[s].is_unlimited()) continue;
      const ProgramLane& lane = program_.lanes[program_.steps[s].lane];
      if (!lane.is_channel) add_operator(s, streams[program_.steps[s].lane]);
      for (const Hop& hop : lane.hops)
        links[2 * index(hop.link) + hop.direction].slices.push_back(slice_of(s));
    }
    name_streams(streams);
    name_links(links);
    std::ranges::stable_sort(streams, {}, &Track::processor);
    streams.insert(streams.end(), links.begin(), links.end());
    std::erase_if(streams, [](const Track& track) { return track.slices.empty(); });
    return streams;
  }

 private:
  /// In the order in which forwards ran, which is not always that of the plan.
  void mark_recomputations() {
    using Run = std::tuple<std::uint32_t, OperatorId, Time, std::uint32_t>;
    std::vector<Run> runs;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::compute || execution_.start[s].is_unlimited()) continue;
      if ((*program_.workload)[step.op].phase == Phase::forward)
        runs.emplace_back(step.microbatch, step.op, execution_.start[s], s);
    }
    std::ranges::sort(runs);
    ran_before_.assign(plan_.steps.size(), false);
    for (std::size_t r = 1; r < runs.size(); ++r) {
      const auto& [microbatch, op, start, step] = runs[r];
      if (std::get<0>(runs[r - 1]) == microbatch && std::get<1>(runs[r - 1]) == op)
        ran_before_[step] = true;
    }
  }

  [[nodiscard]] SliceKind kind_of_step(std::uint32_t s) const {
    const Step& step = plan_.steps[s];
    if (is_move(step.kind)) return kind_of_copy(plan_[step.lane]);
    if (step.kind == StepKind::pair) return SliceKind::pair;
    return ran_before_[s] ? SliceKind::recomputation : kind_of((*program_.workload)[step.op].phase);
  }

  [[nodiscard]] SliceKind kind_of_copy(const Lane& lane) const {
    const bool from_home = is_home(lane.from), to_home = is_home(lane.to);
    if (from_home == to_home) return SliceKind::message;
    return from_home ? SliceKind::offload : SliceKind::prefetch;
  }

  [[nodiscard]] bool is_home(MemoryId memory) const {
    return std::ranges::any_of(platform_.processors,
                               [&](const Processor& p) { return p.memory == memory; });
  }

  [[nodiscard]] TrackSlice slice_of(std::uint32_t s) const {
    return {.step = StepId{s},
            .kind = kind_of_step(s),
            .microbatch = plan_.steps[s].microbatch,
            .start = execution_.start[s],
            .end = std::min(execution_.end[s], execution_.makespan)};
  }

  /// As the engine charges the wait of a stream: until what it reads existed (dependency), until
  /// that was there (transfer), and until it fitted (memory).
  void add_operator(std::uint32_t s, Track& track) const {
    const TrackSlice slice = slice_of(s);
    if (!track.slices.empty() && slice.start > track.slices.back().end) {
      const Time idle_since = track.slices.back().end;
      const Clearing& clearing = clearings_.of(s);
      const Time cleared = std::max(clearing.at, idle_since);
      const Time existed = existed_at(clearing, idle_since, cleared);
      const auto add = [&](StallCause cause, Time from, Time to) {
        if (to > from) track.stalls.push_back({cause, from, to});
      };
      add(StallCause::dependency, idle_since, existed);
      add(StallCause::transfer, existed, cleared);
      add(StallCause::memory, cleared, slice.start);
    }
    track.slices.push_back(slice);
  }

  [[nodiscard]] Time existed_at(const Clearing& clearing, Time idle_since, Time cleared) const {
    const ProgramStep& last = program_.steps[clearing.by];
    if (!is_move(last.kind)) return cleared;
    const std::uint32_t maker = last.source_maker;
    const bool by_operator = maker != kNone && !is_move(program_.steps[maker].kind);
    return by_operator ? std::clamp(execution_.end[maker], idle_since, cleared) : idle_since;
  }

  void name_streams(std::vector<Track>& streams) const {
    for (std::size_t l = 0; l < streams.size(); ++l) {
      const Lane& lane = plan_.lanes[l];
      if (lane.kind != Lane::Kind::stream) continue;
      const Processor& processor = platform_[lane.processor];
      streams[l].processor = lane.processor;
      streams[l].name = processor.streams > 1
                            ? fmt::format("{} stream {}", processor.name, lane.stream)
                            : processor.name;
    }
  }

  void name_links(std::vector<Track>& links) const {
    for (std::uint32_t p = 0; p < links.size(); ++p) {
      const Link& link = platform_.links[p / 2];
      Track& track = links[p];
      track.kind = Track::Kind::link;
      track.link = LinkId{p / 2};
      track.direction = p % 2;
      track.name = fmt::format("{} to {}", link.name, platform_[link.between[1 - p % 2]].name);
      std::ranges::sort(track.slices, {},
                        [](const TrackSlice& slice) { return std::pair(slice.start, slice.step); });
      lay_out(track);
    }
  }

  /// Copies at the same time get rows of their own: the first that is free.
  static void lay_out(Track& track) {
    std::vector<Time> free_at;
    for (TrackSlice& slice : track.slices) {
      const auto row = std::ranges::find_if(free_at, [&](Time at) { return at <= slice.start; });
      slice.row = static_cast<std::uint32_t>(row - free_at.begin());
      if (row == free_at.end())
        free_at.push_back(slice.end);
      else
        *row = slice.end;
    }
    track.rows = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(free_at.size()));
  }

  const Program& program_;
  const Plan& plan_;
  const Platform& platform_;
  const Execution& execution_;
  const Clearings clearings_;
  std::vector<bool> ran_before_;  ///< by step
};

}  // namespace

const char* to_text(SliceKind kind) {
  constexpr std::array<const char*, kSliceKinds> names{
      "forward",   "recomputation", "backward", "backward_input", "backward_weight",
      "optimizer", "pair",          "offload",  "prefetch",       "message"};
  return names[static_cast<std::size_t>(kind)];
}

SliceKind kind_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return SliceKind::forward;
    case Phase::backward:
      return SliceKind::backward;
    case Phase::backward_input:
      return SliceKind::backward_input;
    case Phase::backward_weight:
      return SliceKind::backward_weight;
    case Phase::optimizer:
      return SliceKind::optimizer;
  }
  return SliceKind::forward;
}

std::vector<Track> tracks_of(const Program& program, const Execution& execution) {
  return Tracks(program, execution).run();
}

}  // namespace plimsoll
