#include "scenario/replay/replay.hpp"

#include "base/quantity_text.hpp"
#include "base/whole_file.hpp"
#include "memory/snapshot/snapshot_recorder.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

namespace plimsoll {

namespace {

[[noreturn]] void refuse_replay(const std::string& origin, std::string message,
                                std::string hint = {}) {
  refuse(Location{origin}, std::move(message), std::move(hint));
}

/// By its first byte, or by its name: a pickle of an older protocol begins as any text may.
bool is_pickle(const std::filesystem::path& path) {
  if (path.extension() == ".pickle" || path.extension() == ".pkl") return true;
  std::ifstream file(path, std::ios::binary);
  return file.get() == 0x80;
}

/// The device that was asked for, else the first with anything in it.
const SnapshotDevice& device_of(const Snapshot& snapshot, const ReplayRequest& request) {
  const auto count = static_cast<std::int64_t>(snapshot.devices.size());
  if (request.device && (*request.device < 0 || *request.device >= count))
    refuse_replay("--device", fmt::format("found {}; the snapshot has {} devices, counted from 0",
                                          *request.device, count));
  if (request.device) return snapshot.devices[static_cast<std::size_t>(*request.device)];
  const auto used = std::ranges::find_if(snapshot.devices, [](const SnapshotDevice& device) {
    return !device.events.empty() || !device.segments.empty();
  });
  if (used == snapshot.devices.end())
    refuse_replay(request.path.string(), "found a snapshot without segments and events");
  return *used;
}

Bytes capacity_for(const ReplayRequest& request, const Trace& trace) {
  if (!request.capacity) return trace.capacity.value_or(Bytes::unlimited());
  const Parsed<Bytes> parsed = parse_quantity<Bytes>(*request.capacity, true);
  if (!parsed.value) refuse_replay("--capacity", parsed.problem, parsed.hint);
  return *parsed.value;
}

class StepKeeper final : public ReplayListener {
 public:
  StepKeeper(std::vector<ReplayStep>& steps, std::size_t most) : steps_(steps), most_(most) {}
  void stepped(std::size_t /*step*/, const ReplayStep& what) override {
    if (steps_.size() < most_) steps_.push_back(what);
  }

 private:
  std::vector<ReplayStep>& steps_;
  std::size_t most_;
};

}  // namespace

ReplayReport run_replay(const ReplayRequest& request) {
  std::vector<ReplayChoice> choices = replay_choices(request.allocators, request.set);
  ReplayReport report;
  report.name = request.path.string();
  report.is_snapshot = is_pickle(request.path);
  if (!report.is_snapshot && request.device)
    refuse_replay("--device", "found a trace, expected a snapshot, which has devices");
  if (report.is_snapshot)
    report.trace = trace_of(device_of(load_snapshot(request.path), request), report.name);
  else
    report.trace = load_trace(request.path);
  report.capacity = capacity_for(request, report.trace);
  report.choice = choices.front();
  StepKeeper keeper(report.steps, request.steps);
  report.replayed =
      replay(report.trace, report.capacity, report.choice.settings, report.name, &keeper);
  if (choices.size() == 1) choices = usual_choices();
  for (ReplayChoice& choice : choices) {
    Replayed replayed = replay(report.trace, report.capacity, choice.settings, report.name);
    report.comparison.push_back({std::move(choice), std::move(replayed)});
  }
  return report;
}

bool serves(const Replayed& replayed, const ReplayRefusal& refusal) {
  return !replayed.refusal || replayed.refusal->step > refusal.step;
}

void write_replay_snapshot(const ReplayReport& report, const std::filesystem::path& path) {
  if (report.choice.settings.kind == AllocatorKind::ideal)
    refuse_replay("--snapshot", "allocator `ideal` has no addresses, which a snapshot is made of");
  const SnapshotDevice device =
      record_replay(report.trace, report.capacity, report.choice.settings, report.name);
  write_whole_file(path, to_pickle({{device}}));
}

}  // namespace plimsoll
