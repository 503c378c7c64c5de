#include "base/diagnostic.hpp"
#include "memory/snapshot/snapshot.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Action = SnapshotEvent::Action;

/// What is at an address at some moment.
struct LiveBlock {
  std::int64_t requested = 0, stream = 0;
  std::string name;
};
using LiveBlocks = std::map<std::int64_t, LiveBlock>;

[[noreturn]] void disagree(const std::string& origin, std::size_t event, const std::string& what) {
  refuse({origin}, fmt::format("event {}: {}", event, what));
}

/// From the final segments back to the first event, as the viewer does it.
class SnapshotPast {
 public:
  SnapshotPast(const SnapshotDevice& device, const std::string& origin)
      : device_(device), origin_(origin) {
    for (const SnapshotSegment& segment : device.segments) {
      reserved_ += segment.size;
      for (const SnapshotBlock& block : segment.blocks)
        if (block.state != SnapshotBlock::State::inactive)
          live_[block.address] = {block.requested, segment.stream, block.name};
    }
  }

  void go_back() {
    for (std::size_t e = device_.events.size(); e-- > 0;) undo(e);
  }

  [[nodiscard]] const LiveBlocks& at_start() const { return live_; }
  /// What the device had for the allocator when it refused first.
  [[nodiscard]] std::optional<Bytes> capacity() const { return capacity_; }

 private:
  void undo(std::size_t e) {
    const SnapshotEvent& event = device_.events[e];
    switch (event.action) {
      case Action::alloc:
        if (live_.erase(event.address) == 0)
          disagree(origin_, e,
                   fmt::format("allocates at {:#x}, where no later event and no segment "
                               "has a block",
                               event.address));
        break;
      case Action::free_requested:
        if (!live_.contains(event.address))
          disagree(origin_, e,
                   fmt::format("frees at {:#x}, where nothing is afterwards", event.address));
        break;
      case Action::free_completed:
        if (!live_.emplace(event.address, LiveBlock{event.size, event.stream, event.name}).second)
          disagree(origin_, e,
                   fmt::format("frees at {:#x}, where a block still is", event.address));
        break;
      case Action::segment_alloc:
      case Action::segment_map:
        reserved_ -= event.size;
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        reserved_ += event.size;
        break;
      case Action::oom:
        if (reserved_ >= 0) capacity_ = Bytes{reserved_ + event.device_free};
        break;
      case Action::other:
        break;
    }
  }

  const SnapshotDevice& device_;
  const std::string& origin_;
  LiveBlocks live_;
  std::int64_t reserved_ = 0;
  std::optional<Bytes> capacity_;
};

class SnapshotTracer {
 public:
  SnapshotTracer(const SnapshotDevice& device, const std::string& origin)
      : device_(device), origin_(origin) {}

  Trace run() {
    SnapshotPast past(device_, origin_);
    past.go_back();
    trace_.capacity = past.capacity();
    for (const auto& [address, block] : past.at_start())
      allocate(address, block.requested, block.stream, block.name);
    for (std::size_t e = 0; e < device_.events.size(); ++e) read(e);
    // A stream of its own that freed blocks wait for; known only when all others are.
    for (const std::size_t step : waits_) trace_.steps[step].stream = streams();
    return std::move(trace_);
  }

 private:
  using Op = TraceStep::Op;
  struct Here {
    std::uint32_t block = 0;
    bool is_awaited = false;
  };

  void read(std::size_t e) {
    const SnapshotEvent& event = device_.events[e];
    switch (event.action) {
      case Action::alloc:
        allocate(event.address, event.size, event.stream, event.name);
        break;
      case Action::oom:
        trace_.steps.push_back(
            {.op = Op::attempt, .bytes = Bytes{event.size}, .stream = number_of(event.stream)});
        break;
      case Action::free_requested:
        request_free(e);
        break;
      case Action::free_completed:
        complete_free(e);
        break;
      default:
        break;  // segments are what the replay finds out
    }
  }

  void allocate(std::int64_t address, std::int64_t size, std::int64_t stream,
                const std::string& name) {
    const auto block = static_cast<std::uint32_t>(trace_.blocks.size());
    trace_.blocks.push_back(name.empty() ? fmt::format("{:#x}", address) : name);
    trace_.steps.push_back(
        {.op = Op::alloc, .block = block, .bytes = Bytes{size}, .stream = number_of(stream)});
    here_[address] = {block, false};
  }

  /// Freed at once where the next event completes it; else other streams still use it.
  void request_free(std::size_t e) {
    const SnapshotEvent& event = device_.events[e];
    Here& here = at(e);
    if (here.is_awaited)
      disagree(origin_, e,
               fmt::format("frees at {:#x} once more, where a block waits to be freed already",
                           event.address));
    const bool is_completed = e + 1 < device_.events.size() &&
                              device_.events[e + 1].action == Action::free_completed &&
                              device_.events[e + 1].address == event.address;
    if (is_completed) return;
    waits_.push_back(trace_.steps.size());
    trace_.steps.push_back({.op = Op::record_stream, .block = here.block});
    trace_.steps.push_back({.op = Op::free, .block = here.block});
    here.is_awaited = true;
  }

  void complete_free(std::size_t e) {
    const Here here = at(e);
    trace_.steps.push_back({.op = here.is_awaited ? Op::complete : Op::free, .block = here.block});
    here_.erase(device_.events[e].address);
  }

  Here& at(std::size_t e) {
    const std::int64_t address = device_.events[e].address;
    const auto it = here_.find(address);
    if (it == here_.end())
      disagree(origin_, e, fmt::format("frees at {:#x}, where no block is", address));
    return it->second;
  }

  std::uint32_t number_of(std::int64_t stream) {
    const auto [it, is_new] = streams_.emplace(stream, static_cast<std::uint32_t>(streams_.size()));
    if (is_new && streams_.size() > kMostTracedStreams)
      refuse({origin_}, fmt::format("found more than {} streams", kMostTracedStreams));
    return it->second;
  }
  [[nodiscard]] std::uint32_t streams() const {
    return static_cast<std::uint32_t>(streams_.size());
  }

  const SnapshotDevice& device_;
  const std::string& origin_;
  Trace trace_;
  std::map<std::int64_t, Here> here_;
  std::map<std::int64_t, std::uint32_t> streams_;
  std::vector<std::size_t> waits_;  ///< steps
};

}  // namespace

Trace trace_of(const SnapshotDevice& device, const std::string& origin) {
  return SnapshotTracer(device, origin).run();
}

}  // namespace plimsoll
