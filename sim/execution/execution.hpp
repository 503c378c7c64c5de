/// Plays a program on a platform and measures.
///
/// The loop, for every instant: first all completions, and the releases that they cause; then the
/// waiting steps that may start, in issue order; and again while steps of zero duration remain.
/// Peaks are taken after each start. When nothing runs and steps are left, the run ends: `deadlock`
/// if they wait for each other, whatever the memory, or because it grants in issue order; else
/// `oom`.
///
/// Cost: O(log pending) per step, and O(1) per edge; nothing is allocated per step once warm. The
/// flows of `fair` links keep the time of their next end themselves (engine/flow_network.hpp), so
/// no event is pending that a later start of a flow has made obsolete.
#pragma once

#include "execution/program.hpp"
#include "memory/allocator.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

enum class RunStatus : std::uint8_t { ok, oom, deadlock };

/// Why a stream stood still between two of its operators, or after the last that a failed run
/// played.
enum class StallCause : std::uint8_t {
  transfer,    ///< for a copy to bring, or take away, what exists
  dependency,  ///< for another stream to make what is read
  memory       ///< for memory to be freed
};
inline constexpr std::size_t kStallCauses = 3;
[[nodiscard]] const char* to_text(StallCause);

struct MemoryRecord {
  MemoryUse peak;  ///< of plans: without the platform's `reserved`
  Time peak_time;
  std::array<Bytes, kTensorClasses> at_peak{}, at_end{};
  Bytes bytes_written, bytes_read;  ///< by copies, and by operators that reach it
  Time busy;                        ///< with a copy or an operator at work on it
};

struct PortRecord {
  Bytes bytes;
  Time busy;
};

struct ProcessorRecord {
  Time busy;     ///< of all streams together
  Time powered;  ///< with at least one stream at work
  Time slept;    ///< of the rest
  /// Beyond idling, where operators differ in what they draw (Processor::draws_by_operator).
  Energy energy_at_work;
  std::optional<Time> first_start;
  Time last_end;
  std::array<Time, kStallCauses> stall{};  ///< with the waits that a failed run ended in
  std::int64_t operators = 0;
};

/// One tensor that was resident when memory ran out.
struct Resident {
  std::string tensor;
  TensorClass tensor_class = TensorClass::activation;
  Bytes bytes;
};

/// What a caching allocator holds when it refuses: what is free in it is cut up, or of another
/// stream or pool.
struct CacheAtRefusal {
  Bytes reserved, free, largest_free;
  std::size_t segments = 0;
  std::size_t with_free = 0;  ///< segments that blocks in use keep, although part of them is free
  std::size_t keeping = 0;    ///< those blocks
};

/// A segment of which part is free, and which tensors keep it.
struct KeptSegment {
  std::uint64_t number = 0;  ///< in the order of creation
  Bytes size, free, largest_free;
  std::size_t blocks = 0;            ///< in use
  std::vector<std::string> tensors;  ///< of those: at most 3, first those between free pieces
};

/// How an allocator with addresses holds its memory when it refuses:
/// reserved = requested + rounding + tails + holes.
struct LayoutAtRefusal {
  Bytes requested, allocated, reserved;
  Bytes rounding, tails, holes;
  std::size_t cut_segments = 0;   ///< partly free
  std::vector<KeptSegment> kept;  ///< of those at most 5, with the most free bytes first
};

/// How a placement made before the run exceeds its memory; rounded up to the alignment.
struct PlacementAtRefusal {
  std::string method;
  std::size_t blocks = 0;  ///< buffers and workspaces
  Bytes load;              ///< the most of them alive at one time
  Bytes end;               ///< of the placement
  Bytes lower_bound;       ///< proven: no placement ends below it
};

/// Why a run ended `oom`.
struct OutOfMemory {
  std::string step;  ///< what asked
  std::string memory;
  Bytes asked, free, largest_free_block, capacity;
  std::vector<Resident> largest;  ///< resident tensors, largest first, at most 10
  std::array<Bytes, kTensorClasses> by_class{};
  std::size_t residents = 0;
  std::optional<CacheAtRefusal> cache;
  std::optional<LayoutAtRefusal> layout;
  std::optional<PlacementAtRefusal> placement;  ///< then nothing has started
};

/// What an execution counts, steps aside. Where a run repeats itself, each repetition adds the same to
/// every sum.
struct ExecutionSums {
  RunStatus status = RunStatus::ok;
  /// Whether a start ever waited for memory; if not, more memory changes nothing.
  bool waited_for_memory = false;
  /// How many events were handled: ends of steps and of latencies, instants at which flows end, and
  /// those at which memory may fit. At most a few for each step.
  std::uint64_t events = 0;
  std::uint64_t tries = 0;  ///< how often a step whose conditions were met was tried to be started
  Time makespan;            ///< end of the last step; of the last that ended
  Time period;
  std::vector<MemoryRecord> memories;
  std::vector<PortRecord> ports;  ///< 2 * link + direction of travel
  std::vector<ProcessorRecord> processors;
  std::vector<Time> link_busy;                    ///< with a copy in either direction
  std::vector<Energy> processor_operator_energy;  ///< given or per FLOP, of the operators run
  Power peak_power;                               ///< of the components with power states
};

/// Between two rounds of a reduction, while another step held its links.
struct RoundGap {
  std::uint32_t step = 0;
  Time begin, end;
};

struct Execution : ExecutionSums {
  std::vector<Time> start, end;    ///< by step; unlimited where it did not happen
  std::vector<RoundGap> gaps;      ///< in the order of their ends
  std::optional<OutOfMemory> oom;  ///< also of a cycle that waits for memory
  std::vector<std::string> cycle;  ///< of a deadlock: who waits for whom
};

class Observer;

/// Runs the program once, from an empty machine. Where a memory is placed ahead of time it is played
/// before that to learn the lifetimes (placements.hpp). Precondition: lowered from a checked plan.
[[nodiscard]] Execution execute(const Program& program);

/// The same, and tells `observer` what happens (observer.hpp).
Execution execute(const Program& program, Observer& observer);

/// What a judge looks at: status, times, energy and requested peaks are those of execute(); what is
/// allocated and held of memories that are placed ahead of time is not. There the program is played
/// once, not twice.
[[nodiscard]] Execution execute_without_addresses(const Program& program);

}  // namespace plimsoll
