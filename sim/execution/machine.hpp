/// The state of the machine while a program runs: what execution.cpp drives. Internal to this
/// floor.
#pragma once

#include "engine/drain.hpp"
#include "engine/event_queue.hpp"
#include "engine/flow_network.hpp"
#include "execution/execution.hpp"
#include "execution/power_meter.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// A memory at run time.
struct MemoryState {
  Allocator allocator;
  Bytes limit;  ///< of what is requested
  std::array<Bytes, kTensorClasses> live{};
  std::vector<std::uint32_t> waiting;  ///< steps that did not fit
  std::vector<std::uint32_t> drains;   ///< under way
  MemoryRecord record;

  [[nodiscard]] bool is_within_limit(Bytes more) const {
    return limit.is_unlimited() || more <= limit - allocator.now().requested;
  }
};

/// One port at run time. A half-duplex fifo link is taken as its even port; what is carried is
/// recorded by the direction of travel.
struct PortState {
  bool busy = false;
  std::vector<std::uint32_t> waiting;  ///< copies that found it busy
  std::uint32_t copies = 0;            ///< on their way
  Time carries_since;
};

/// A compute stream at run time: when it fell idle, and since when only memory is missing.
struct LaneState {
  bool started = false;
  Time idle_since, cleared_at;
  std::uint32_t cleared_by = kNone;  ///< the step that came last
};

struct LastWait;

class Machine {
 public:
  explicit Machine(const Program& program);

  Execution run();

 private:
  // --- the loop
  void count_waits();
  bool place_initial();
  void complete_all_at_now();
  void start_all_ready();
  [[nodiscard]] RunStatus give_up();
  Execution finish(RunStatus status);

  // --- starts
  void try_start(std::uint32_t step);
  [[nodiscard]] bool ports_free(std::uint32_t step);
  [[nodiscard]] bool allocate(std::uint32_t step);
  [[nodiscard]] bool allocate_blocks(std::uint32_t step, MemoryState& memory);
  void account_allocation(std::uint32_t step, MemoryState& memory);
  void begin_compute(std::uint32_t step);
  void charge_stall(const LaneState& lane, ProcessorRecord& record) const;
  void charge_last_waits(const std::vector<LastWait>& waits);
  void begin_move(std::uint32_t step);
  void begin_carrying(const ProgramLane& lane);
  void end_carrying(const ProgramLane& lane);
  void take_peak(MemoryState& memory);

  // --- ends
  void complete(std::uint32_t step);
  void end_compute(std::uint32_t step);
  void end_move(std::uint32_t step);
  void follow(std::uint32_t edge, std::uint32_t cause_step);
  void clear(std::uint32_t step, std::uint32_t cause_step);
  void free_buffer(std::uint32_t buffer);
  void wake(std::vector<std::uint32_t>& waiting);

  // --- progressive release
  void begin_drain(std::uint32_t step);
  [[nodiscard]] std::uint32_t drain_of_buffer(std::uint32_t buffer) const;
  void settle_drains(MemoryState& memory);
  void end_drain(std::uint32_t drain);
  void open_drain(std::uint32_t drain);
  void wake_when_drained(std::uint32_t memory, Bytes demand);

  // --- fair links
  void join_flow(std::uint32_t step);
  void advance_flows();
  void schedule_tick();

  void make_ready(std::uint32_t step);

  /// Components of the meter: processors, then memories, then links.
  [[nodiscard]] std::size_t memory_component(std::size_t memory) const {
    return platform_.processors.size() + memory;
  }
  [[nodiscard]] std::size_t link_component(std::size_t link) const {
    return platform_.processors.size() + platform_.memories.size() + link;
  }

  const Program& program_;
  const Plan& plan_;
  const Platform& platform_;
  Time now_;
  EventQueue events_;
  std::vector<std::uint32_t> waits_, release_waits_;  ///< edges into a step or release, not passed
  std::vector<std::uint32_t> ready_;                  ///< a heap: the least step first
  std::vector<MemoryState> memories_;
  std::vector<PortState> ports_;
  std::vector<LaneState> lanes_;
  std::vector<MemoryBlock> blocks_;      ///< by buffer, where there is an arena
  std::vector<MemoryBlock> workspaces_;  ///< by lane, where there is an arena
  std::vector<MemoryBlock> asked_;       ///< by the step that is being started, in an arena
  std::vector<bool> live_;               ///< by buffer
  std::vector<Drain> drains_;            ///< as Program::drains
  std::vector<std::uint32_t> drain_of_;  ///< by step; empty where there are none
  std::optional<FlowNetwork> flows_;
  std::vector<PathId> paths_;  ///< by lane
  std::vector<std::uint32_t> ended_flows_;
  Time tick_at_ = Time::unlimited();
  std::optional<PowerMeter> meter_;
  std::size_t unfinished_ = 0;
  Execution execution_;
};

}  // namespace plimsoll
