#include "report/trace/memory_snapshot.hpp"

#include "base/whole_file.hpp"
#include "execution/observer.hpp"
#include "memory/snapshot/snapshot_recorder.hpp"

#include <optional>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {

namespace {

const char* category_of(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::parameter:
      return "parameter";
    case TensorClass::gradient:
      return "gradient";
    case TensorClass::optimizer_state:
      return "optimizer state";
    case TensorClass::activation:
    case TensorClass::saved:
      return "activation";
    case TensorClass::workspace:
      return "workspace";
    case TensorClass::in_flight:
      break;
  }
  return "unknown";
}

AllocatorSettings settings_of(const Memory& memory) {
  return {memory.allocator, memory.alignment, memory.caching, memory.bfc, memory.placed};
}

class MemoryRecorder final : public Observer {
 public:
  explicit MemoryRecorder(const Program& program) : program_(program) {
    const Platform& platform = *program.platform;
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
      const Memory memory = memory_in(*program.plan, platform, MemoryId{m});
      recorders_.emplace_back();
      if (memory.allocator == AllocatorKind::ideal || memory.is_switch) continue;
      const Bytes most = is_arena(memory.allocator) ? usable(*program.plan, platform, MemoryId{m})
                                                    : memory.usable();
      recorders_.back().emplace(most, settings_of(memory), "--snapshot");
    }
  }

  void segment_changed(MemoryId memory, const SegmentEvent& event, Time now) override {
    of(memory).segment_changed(event, {"", "", microseconds(now)});
  }
  void block_taken(MemoryId memory, std::optional<BufferId> buffer, StepId step,
                   const MemoryBlock& block, const MemoryPiece& piece, Time now) override {
    SnapshotRecorder::Note note{"", "workspace", microseconds(now)};
    if (buffer) {
      const Tensor& tensor = program_.tensor(*buffer);
      note.name = tensor.name;
      note.category = category_of(tensor.tensor_class);
    } else {
      note.name =
          "workspace of " + describe(*program_.plan, step, *program_.workload, *program_.platform);
    }
    of(memory).taken(block, piece, note);
  }
  void block_given_back(MemoryId memory, const MemoryBlock& block, Time now) override {
    of(memory).freed(block, false, {"", "", microseconds(now)});
  }

  void refused(const OutOfMemory& oom, Time now) {
    const std::optional<MemoryId> memory = program_.platform->find_memory(oom.memory);
    if (!memory || !recorders_[index(*memory)]) return;
    const Bytes usable = program_.platform->memories[index(*memory)].usable();
    // Without a layout nothing got an address: a memory that could not be placed ahead of time.
    const Bytes held = oom.layout ? oom.layout->reserved : Bytes{};
    const Bytes left = usable.is_unlimited() ? usable : usable - held;
    of(*memory).refused(0, oom.asked, left, {"", "", microseconds(now)});
  }

  [[nodiscard]] Snapshot finish() {
    Snapshot snapshot;
    for (auto& recorder : recorders_)
      if (recorder) snapshot.devices.push_back(recorder->finish());
    return snapshot;
  }

 private:
  static std::int64_t microseconds(Time time) { return time.count() / 1'000'000; }
  SnapshotRecorder& of(MemoryId memory) { return *recorders_[index(memory)]; }

  const Program& program_;
  std::vector<std::optional<SnapshotRecorder>> recorders_;  ///< by memory
};

void require_addresses(const Plan& plan, const Platform& platform) {
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
    const Memory memory = memory_in(plan, platform, MemoryId{m});
    if (memory.allocator != AllocatorKind::ideal && !memory.is_switch) return;
  }
  refuse(
      {"--snapshot"},
      fmt::format("every memory of {} has the allocator `ideal`, which has no addresses; expected "
                  "another, as with --set memories.{}.allocator=caching",
                  platform.name, platform.memories.front().key()));
}

}  // namespace

void write_memory_snapshot(const TracedRun& run, const std::filesystem::path& path) {
  require_addresses(run.result.plan, run.platform);
  const Topology topology(run.platform);
  const Program program =
      lower(run.result.plan, run.result.workload_as_run, run.platform, topology);
  MemoryRecorder recorder(program);
  const Execution execution = execute(program, recorder);
  if (execution.oom) recorder.refused(*execution.oom, execution.makespan);
  write_whole_file(path, to_pickle(recorder.finish()));
}

}  // namespace plimsoll
