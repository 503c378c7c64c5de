#include "platform/core/home_memory.hpp"
#include "report/series/series.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

class Tracks {
 public:
  Tracks(const Program& program, const Recording& recording)
      : program_(program),
        plan_(*program.plan),
        platform_(*program.platform),
        recording_(recording),
        is_home_(homes_of(platform_)),
        carries_from_(plan_.steps.size(), Time::unlimited()),
        ran_(program.workload->operators.size() * plan_.microbatches, false) {
    for (const LinkUse& use : recording.links) carries_from_[index(use.step)] = use.from;
  }

  std::vector<Track> run() {
    std::vector<Track> streams(program_.lanes.size()), links(2 * platform_.links.size());
    for (const StepTimes& step : recording_.steps) {
      const std::uint32_t l = program_.steps[index(step.step)].lane;
      const ProgramLane& lane = program_.lanes[l];
      const TrackSlice slice = slice_of(step);
      if (!lane.is_channel) streams[l].slices.push_back(slice);
      for (const Hop& hop : lane.hops)
        links[2 * index(hop.link) + hop.direction].slices.push_back(slice);
    }
    for (const StreamWait& wait : recording_.waits)
      streams[index(wait.stream)].stalls.push_back({wait.cause, wait.from, wait.to});
    name_streams(streams);
    name_links(links);
    std::ranges::stable_sort(streams, {}, &Track::processor);
    streams.insert(streams.end(), links.begin(), links.end());
    std::erase_if(streams, [](const Track& track) { return track.slices.empty(); });
    return streams;
  }

 private:
  /// Call in the order in which the steps started.
  [[nodiscard]] SliceKind kind_of_step(const Step& step) {
    if (is_move(step.kind)) return kind_of_copy(plan_[step.lane]);
    if (step.kind == StepKind::pair) return SliceKind::pair;
    const Phase phase = (*program_.workload)[step.op].phase;
    if (phase != Phase::forward) return kind_of(phase);
    const std::size_t run = step.microbatch * program_.workload->operators.size() + index(step.op);
    if (ran_[run]) return SliceKind::recomputation;
    ran_[run] = true;
    return SliceKind::forward;
  }

  [[nodiscard]] SliceKind kind_of_copy(const Lane& lane) const {
    const bool from_home = is_home_[index(lane.from)], to_home = is_home_[index(lane.to)];
    if (from_home == to_home) return SliceKind::message;
    return from_home ? SliceKind::offload : SliceKind::prefetch;
  }

  [[nodiscard]] TrackSlice slice_of(const StepTimes& times) {
    const Step& step = plan_[times.step];
    return {.step = times.step,
            .kind = kind_of_step(step),
            .microbatch = step.microbatch,
            .start = times.start,
            .carries_from = std::min(carries_from_[index(times.step)], times.end),
            .end = times.end};
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
  const Recording& recording_;
  std::vector<bool> is_home_;       ///< by memory
  std::vector<Time> carries_from_;  ///< by step; unlimited where it carries nothing
  std::vector<bool> ran_;           ///< by microbatch and operator: its forward
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

std::vector<Track> tracks_of(const Program& program, const Recording& recording) {
  return Tracks(program, recording).run();
}

}  // namespace plimsoll
