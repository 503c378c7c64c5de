#include "report/html/html_runs.hpp"

#include "report/run/run_details.hpp"
#include "report/run/run_failures.hpp"
#include "report/run/run_notes.hpp"
#include "report/series/address_map.hpp"
#include "report/series/thinning.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

/// Instead of a microbatch: of what all microbatches share.
constexpr std::int64_t kShared = -1;

/// Numbers as differences, each to the one before.
class Differences {
 public:
  void add(std::int64_t value) {
    values_.push_back(value - last_);
    last_ = value;
  }
  [[nodiscard]] const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
  std::int64_t last_ = 0;
};

/// Names that occur often, by number.
class Names {
 public:
  std::size_t operator()(const std::string& name) {
    const auto [place, is_new] = numbers_.try_emplace(name, numbers_.size());
    if (is_new) all_.push_back(name);
    return place->second;
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> all_;
};

/// Which piece of the network on its device an operator belongs to: pieces are runs of forwards
/// that follow each other in the network.
class Chunks {
 public:
  Chunks(const Track& track, const RunResult& run) : run_(run) {
    for (const TrackSlice& slice : track.slices)
      if (const OperatorId op = forward_of(slice); op != kNoOperator)
        forwards_.push_back(index(op));
    std::ranges::sort(forwards_);
    forwards_.erase(std::unique(forwards_.begin(), forwards_.end()), forwards_.end());
    for (std::size_t f = 0; f < forwards_.size(); ++f)
      chunk_.push_back(f == 0 ? 0 : chunk_[f - 1] + (forwards_[f] > forwards_[f - 1] + 1 ? 1 : 0));
  }

  [[nodiscard]] bool are_several() const { return !chunk_.empty() && chunk_.back() > 0; }
  [[nodiscard]] std::size_t of(const TrackSlice& slice) const {
    const OperatorId op = forward_of(slice);
    if (op == kNoOperator) return 0;
    const auto place = std::ranges::lower_bound(forwards_, index(op));
    return chunk_[static_cast<std::size_t>(place - forwards_.begin())];
  }

 private:
  [[nodiscard]] OperatorId forward_of(const TrackSlice& slice) const {
    const Step& step = run_.plan[slice.step];
    if (is_move(step.kind)) return kNoOperator;
    const Operator& op = run_.workload_as_run[step.op];
    return op.phase == Phase::forward ? step.op : op.forward;
  }

  const RunResult& run_;
  std::vector<std::uint32_t> forwards_;
  std::vector<std::size_t> chunk_;  ///< by place in `forwards_`
};

class RunEncoder {
 public:
  RunEncoder(const Scenario& scenario, const RunResult& run, Names& names)
      : platform_(scenario.platform),
        run_(run),
        topology_(scenario.platform),
        program_(lower(run.plan, run.workload_as_run, scenario.platform, topology_)),
        recording_(record(program_)),
        names_(names) {}

  void add_to(Json& object) {
    Json& memories = object["memories"] = Json::array();
    for (const MemorySeries& memory : recording_.memories) memories.push_back(memory_json(memory));
    add_addresses_to(memories);
    object["tracks"] = tracks_json();
    object["stays"] = stays_json(recording_.stays);
    const std::vector<PowerPoint> power = power_series(program_, recording_);
    if (!power.empty()) object["power"] = power_json(power);
  }

 private:
  /// Of many memories each has fewer, so that a page of a mesh stays as small.
  [[nodiscard]] std::size_t moments_of_each() const {
    return std::min(kMostMoments,
                    2 * kMostMoments / std::max<std::size_t>(recording_.memories.size(), 1));
  }

  Json memory_json(const MemorySeries& series) const {
    const MemoryRecord& record = run_.execution.memories[index(series.memory)];
    const Memory& memory = platform_[series.memory];
    Json object{{"id", index(series.memory)}, {"name", memory.name}};
    const Bytes most = usable(run_.plan, platform_, series.memory);
    if (!most.is_unlimited()) object["usable"] = most.count();
    object["limited"] = most < memory.usable();
    if (const auto budget = budget_of(run_, series.memory); budget && *budget < memory.usable())
      object["budget"] = budget->count();
    if (record.peak.reserved != record.peak.allocated)
      object["reserved"] = record.peak.reserved.count();
    object["peak"] = {{"bytes", record.peak.requested.count()}, {"time", record.peak_time.count()}};
    const auto points = thinned(series.points, run_.execution.makespan, moments_of_each(),
                                [](const MemoryPoint& point) { return point.use.requested; });
    object["thinned"] = points.size() < series.points.size();
    Differences time;
    std::array<Differences, kTensorClasses> alive;
    std::array<bool, kTensorClasses> is_used{};
    for (const MemoryPoint& point : points) {
      time.add(point.time.count());
      for (std::size_t c = 0; c < kTensorClasses; ++c) {
        alive[c].add(point.alive[c].count());
        is_used[c] = is_used[c] || point.alive[c] > Bytes{};
      }
    }
    object["time"] = time.values();
    Json& classes = object["alive"] = Json::object();
    for (std::size_t c = 0; c < kTensorClasses; ++c)
      if (is_used[c]) classes[to_text(static_cast<TensorClass>(c))] = alive[c].values();
    return object;
  }

  void add_addresses_to(Json& memories) {
    std::vector<AddressMap> maps = address_maps(program_, recording_);
    const std::size_t most = kMostBlocks / std::max<std::size_t>(maps.size(), 1);
    for (AddressMap& map : maps)
      for (Json& memory : memories)
        if (memory["id"] == index(map.memory))
          memory["addresses"] = addresses_json(thinned(std::move(map), recording_.end, most));
  }

  Json addresses_json(const AddressMap& map) {
    std::vector<std::int64_t> segments;
    for (const Bytes begin : map.segments) segments.push_back(begin.count());
    Json object{{"segments", segments},
                {"ranges", ranges_json(map.ranges)},
                {"blocks", blocks_json(map.blocks)},
                {"left_out", map.left_out},
                {"largest_left_out", map.largest_left_out.count()},
                {"ranges_left_out", map.ranges_left_out}};
    const std::optional<OutOfMemory>& oom = run_.execution.oom;
    if (oom && oom->memory == platform_[map.memory].name)
      object["oom"] = {{"step", oom->step},
                       {"asked", oom->asked.count()},
                       {"largest", oom->largest_free_block.count()}};
    return object;
  }

  static Json ranges_json(const std::vector<AddressMap::Range>& ranges) {
    std::vector<std::int64_t> address, size;
    Differences begin;
    Json length = Json::array();
    for (const AddressMap::Range& range : ranges) {
      address.push_back(range.address.count());
      size.push_back(range.size.count());
      begin.add(range.begin.count());
      length.push_back(length_of(range.begin, range.end));
    }
    return {{"address", address},
            {"size", size},
            {"begin", begin.values()},
            {"length", std::move(length)}};
  }

  Json blocks_json(const std::vector<AddressMap::Block>& blocks) {
    std::vector<std::size_t> name, tensor_class;
    std::vector<std::int64_t> microbatch, requested, address, size;
    Differences begin;
    Json length = Json::array();
    for (const auto& [it, at] : blocks) {
      name.push_back(name_of(it.tensor, it.step));
      tensor_class.push_back(static_cast<std::size_t>(it.tensor_class));
      microbatch.push_back(microbatch_of(it.tensor, it.microbatch));
      requested.push_back(it.requested.count());
      address.push_back(at.count());
      size.push_back(it.size.count());
      begin.add(it.begin.count());
      length.push_back(length_of(it.begin, it.end));
    }
    return {{"name", name},
            {"class", tensor_class},
            {"microbatch", microbatch},
            {"requested", requested},
            {"address", address},
            {"size", size},
            {"begin", begin.values()},
            {"length", std::move(length)}};
  }

  /// Null where it outlives the run.
  static Json length_of(Time begin, Time end) {
    return end.is_unlimited() ? Json() : Json((end - begin).count());
  }

  Json tracks_json() {
    const std::vector<Track> tracks = tracks_of(program_, recording_);
    std::size_t slices = 0, rows = 0;
    for (const Track& track : tracks) {
      slices += track.slices.size();
      rows += track.rows;
    }
    // Of two groups that follow each other one spans more than half of it, so that there are at
    // most twice as many as fit into the run, and no more than there may be.
    const Time resolution =
        slices <= kMostMoments
            ? Time{-1}
            : Time{run_.execution.makespan.count() /
                   static_cast<std::int64_t>(std::max<std::size_t>(kMostMoments / (2 * rows), 1))};
    Json all = Json::array();
    for (const Track& track : tracks) all.push_back(track_json(track, resolution));
    return all;
  }

  Json track_json(const Track& track, Time resolution) {
    const std::vector<ThinSlice> slices = thinned(track, resolution);
    const Chunks chunks(track, run_);
    Differences start;
    std::vector<std::int64_t> length, microbatch;
    std::vector<std::size_t> kind, name, row, chunk, count;
    for (const auto& [slice, of] : slices) {
      start.add(slice.start.count());
      length.push_back((slice.end - slice.start).count());
      kind.push_back(static_cast<std::size_t>(slice.kind));
      microbatch.push_back(microbatch_of(slice));
      name.push_back(name_of(slice.step));
      row.push_back(slice.row);
      count.push_back(of);
      if (chunks.are_several()) chunk.push_back(chunks.of(slice));
    }
    const bool is_stream = track.kind == Track::Kind::stream;
    Json object{{"type", is_stream ? "stream" : "link"},
                {"label", track.name},
                {"start", start.values()},
                {"length", length},
                {"kind", kind},
                {"microbatch", microbatch},
                {"name", name},
                {"stalls", stalls_json(track)}};
    if (track.rows > 1) object["rows"] = track.rows;
    if (track.rows > 1) object["row"] = row;
    if (!chunk.empty()) object["chunk"] = chunk;
    if (slices.size() < track.slices.size()) object["count"] = count;
    if (const Json pairs = pairs_json(slices); !pairs.empty()) object["pairs"] = pairs;
    return object;
  }

  /// Of each slice that is a pair: its place, and what its two operators are.
  Json pairs_json(const std::vector<ThinSlice>& slices) const {
    Json pairs = Json::array();
    for (std::size_t s = 0; s < slices.size(); ++s) {
      const Step& step = run_.plan[slices[s].slice.step];
      if (step.kind != StepKind::pair) continue;
      const auto kind = [&](OperatorId op) {
        return static_cast<std::size_t>(kind_of(run_.workload_as_run[op].phase));
      };
      pairs.push_back({s, kind(step.op), run_.plan.of_replica(step.microbatch), kind(step.second),
                       run_.plan.of_replica(step.second_microbatch)});
    }
    return pairs;
  }

  /// What is there once for all microbatches has none.
  [[nodiscard]] std::int64_t microbatch_of(const TrackSlice& slice) const {
    if (slice.kind == SliceKind::optimizer) return kShared;
    return run_.plan.of_replica(slice.microbatch);
  }

  std::size_t name_of(StepId id) {
    const Step& step = run_.plan[id];
    if (step.kind == StepKind::reduce) return names_("gradients");
    if (step.kind == StepKind::copy)
      return names_(
          run_.workload_as_run[run_.plan[run_.plan.list(step.writes).front()].tensor].name);
    const std::string& first = run_.workload_as_run[step.op].name;
    if (step.kind != StepKind::pair) return names_(first);
    return names_(fmt::format("{} of microbatch {} with {} of microbatch {}", first,
                              run_.plan.of_replica(step.microbatch),
                              run_.workload_as_run[step.second].name,
                              run_.plan.of_replica(step.second_microbatch)));
  }

  static Json stalls_json(const Track& track) {
    std::vector<std::size_t> cause;
    Differences start;
    std::vector<std::int64_t> length;
    for (const TrackStall& stall : track.stalls) {
      cause.push_back(static_cast<std::size_t>(stall.cause));
      start.add(stall.start.count());
      length.push_back((stall.end - stall.start).count());
    }
    return {{"cause", cause}, {"start", start.values()}, {"length", length}};
  }

  /// By begin, and the largest where there are too many.
  static std::vector<const Stay*> listed(const std::vector<Stay>& stays, bool& are_fewer) {
    std::vector<const Stay*> all;
    for (const Stay& stay : stays)
      if (stay.bytes > Bytes{}) all.push_back(&stay);
    are_fewer = all.size() > kMostMoments;
    if (are_fewer) {
      std::ranges::stable_sort(all, std::greater{}, &Stay::bytes);
      all.resize(kMostMoments);
    }
    std::ranges::stable_sort(all, {},
                             [&](const Stay* stay) { return std::pair(stay->begin, stay); });
    return all;
  }

  Json stays_json(const std::vector<Stay>& stays) {
    Differences begin;
    std::vector<std::int64_t> bytes, microbatch;
    std::vector<std::size_t> memory, name;
    Json length = Json::array();
    bool are_fewer = false;
    for (const Stay* stay : listed(stays, are_fewer)) {
      memory.push_back(index(stay->memory));
      name.push_back(name_of(stay->tensor, stay->step));
      bytes.push_back(stay->bytes.count());
      microbatch.push_back(microbatch_of(stay->tensor, stay->microbatch));
      begin.add(stay->begin.count());
      length.push_back(length_of(stay->begin, stay->end));
    }
    return {{"memory", memory},        {"name", name},
            {"bytes", bytes},          {"microbatch", microbatch},
            {"begin", begin.values()}, {"length", std::move(length)},
            {"thinned", are_fewer}};
  }

  [[nodiscard]] std::int64_t microbatch_of(TensorId tensor, std::uint32_t microbatch) const {
    if (tensor == kNoTensor) return run_.plan.of_replica(microbatch);
    const Lifetime lifetime = run_.workload_as_run[tensor].lifetime;
    const bool is_shared = lifetime == Lifetime::resident || lifetime == Lifetime::accumulated;
    return is_shared ? kShared : std::int64_t{run_.plan.of_replica(microbatch)};
  }

  /// Of a tensor, or without one of the workspace of a step.
  std::size_t name_of(TensorId tensor, StepId step) {
    return names_(tensor == kNoTensor
                      ? "workspace of " + run_.workload_as_run[run_.plan[step].op].name
                      : run_.workload_as_run[tensor].name);
  }

  Json power_json(const std::vector<PowerPoint>& all) const {
    Differences time;
    std::vector<double> drawn, used;
    for (const PowerPoint& point : thinned(all, run_.execution.makespan, kMostMoments,
                                           [](const PowerPoint& it) { return it.drawn; })) {
      time.add(point.time.count());
      drawn.push_back(in_watts(point.drawn));
      used.push_back(in_joules(point.used));
    }
    return {{"time", time.values()}, {"drawn", drawn}, {"used", used}};
  }

  const Platform& platform_;
  const RunResult& run_;
  const Topology topology_;
  const Program program_;
  const Recording recording_;
  Names& names_;
};

Json run_page_json(const Scenario& scenario, const RunResult& run, std::span<const RunResult> all,
                   Names& names) {
  Json object{{"label", label_of(run)},
              {"status", status_text(run)},
              {"microbatches", run.plan.microbatches / run.plan.replicas},
              {"makespan", 0},
              {"notes", notes_of(run)}};
  if (const std::string failure = explain_failure(scenario, run, all, Style{}); !failure.empty())
    object["failure"] = failure;
  if (run.infeasible) return object;
  object["words"] = run_details(scenario, run, Style{});
  object["makespan"] = run.execution.makespan.count();
  RunEncoder(scenario, run, names).add_to(object);
  return object;
}

}  // namespace

std::string html_runs_json(const HtmlRuns& section) {
  Names names;
  Json runs = Json::array();
  for (const RunResult& run : section.results)
    runs.push_back(run_page_json(*section.scenario, run, section.results, names));
  Json kinds = Json::array(), causes = Json::array(), classes = Json::array();
  for (std::size_t k = 0; k < kSliceKinds; ++k) kinds.push_back(to_text(static_cast<SliceKind>(k)));
  for (std::size_t c = 0; c < kStallCauses; ++c)
    causes.push_back(to_text(static_cast<StallCause>(c)));
  for (std::size_t c = 0; c < kTensorClasses; ++c)
    classes.push_back(to_text(static_cast<TensorClass>(c)));
  const Json object{{"names", names.all()},
                    {"kinds", kinds},
                    {"causes", causes},
                    {"classes", classes},
                    {"runs", runs}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace plimsoll
