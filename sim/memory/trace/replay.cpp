#include "memory/trace/replay.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostKeepersNamed = 5, kMostCutSegments = 10;

class TracePlayer {
 public:
  TracePlayer(const Trace& trace, Bytes capacity, const AllocatorSettings& settings,
              ReplayListener* listener)
      : trace_(trace),
        memory_(Allocator::of(capacity, settings)),
        listener_(listener),
        blocks_(trace.blocks.size()),
        states_(trace.blocks.size(), State::absent) {
    if (listener_ != nullptr) memory_.note_segments();
  }

  Replayed run() {
    for (bool goes_on = true; goes_on && done_.steps < trace_.steps.size(); ++done_.steps)
      goes_on = play(trace_.steps[done_.steps]);
    done_.counters = memory_.counters();
    done_.largest_free = largest_free();
    const std::vector<MemoryBlock> held = all_held();
    done_.gaps = gaps_of(memory_, held);
    done_.cut = named_cuts(done_.cut_segments);
    return std::move(done_);
  }

 private:
  enum class State : std::uint8_t { absent, in_use, awaited };
  using Op = TraceStep::Op;
  using What = ReplayStep::What;

  bool play(const TraceStep& step) {
    ReplayStep what;
    switch (step.op) {
      case Op::alloc:
      case Op::attempt:
        take(step, what);
        break;
      case Op::free:
        give_back(step.block, what);
        break;
      case Op::record_stream:
        if (CachingAllocator* cache = memory_.as_caching(); cache && is_in_use(step.block))
          cache->used_on(blocks_[step.block], step.stream);
        break;
      case Op::complete:
        complete(step.block);
        break;
      case Op::events_complete:
        for (const std::uint32_t block : std::exchange(awaited_, {})) complete(block);
        break;
    }
    tell_segments();
    tell_step(what);
    return what.what != What::refused || step.op == Op::attempt;
  }

  void take(const TraceStep& step, ReplayStep& what) {
    const std::int64_t retries = memory_.counters().retries;
    const auto block = memory_.allocate(step.bytes, step.stream);
    // Before a cache gives everything back it waits for all streams.
    if (memory_.counters().retries > retries)
      for (const std::uint32_t id : std::exchange(awaited_, {})) forget_awaited(id);
    tell_segments();
    if (!block) {
      what.what = What::refused;
      refuse(step);
      return;
    }
    what.what = What::granted;
    if (step.op == Op::attempt) return memory_.free(*block);
    blocks_[step.block] = *block;
    states_[step.block] = State::in_use;
    load_ += step.bytes;
    done_.load = std::max(done_.load, load_);
    what.piece = piece_of(*block);
    if (listener_ != nullptr && what.piece) listener_->granted(step, *block, *what.piece);
  }

  void give_back(std::uint32_t id, ReplayStep& what) {
    if (!is_in_use(id)) return;
    const MemoryBlock& block = blocks_[id];
    what.piece = piece_of(block);
    load_ -= block.requested;
    const Bytes active = memory_.counters().now.active;
    memory_.free(block);
    const bool is_awaited = block.requested > Bytes{} && memory_.counters().now.active == active;
    what.what = is_awaited ? What::awaited : What::freed;
    states_[id] = is_awaited ? State::awaited : State::absent;
    if (is_awaited) awaited_.push_back(id);
    if (listener_ != nullptr && what.piece) listener_->freed(block, is_awaited);
  }

  void complete(std::uint32_t id) {
    if (states_[id] != State::awaited) return;
    memory_.as_caching()->complete(blocks_[id]);
    std::erase(awaited_, id);
    forget_awaited(id);
  }

  void forget_awaited(std::uint32_t id) {
    states_[id] = State::absent;
    if (listener_ != nullptr) listener_->completed(blocks_[id]);
  }

  void refuse(const TraceStep& step) {
    const Bytes rounded = memory_.rounded(step.bytes);
    const AllocatorUse now = memory_.counters().now;
    const Bytes capacity = memory_.capacity();
    if (listener_ != nullptr)
      listener_->refused(step, rounded,
                         capacity.is_unlimited() ? capacity : capacity - now.reserved);
    if (done_.refusal) return;
    ReplayRefusal refusal{.step = done_.steps, .asked = step.bytes, .rounded = rounded};
    refusal.free = memory_.free_bytes();
    refusal.largest_free = largest_free();
    refusal.now = now;
    const std::vector<MemoryBlock> held = all_held();
    refusal.gaps = gaps_of(memory_, held);
    refusal.cut = named_cuts(refusal.cut_segments);
    done_.refusal = std::move(refusal);
  }

  [[nodiscard]] bool is_in_use(std::uint32_t id) const { return states_[id] == State::in_use; }

  [[nodiscard]] std::optional<MemoryPiece> piece_of(const MemoryBlock& block) const {
    if (memory_.is_ideal() || block.requested == Bytes{}) return std::nullopt;
    return memory_.piece_of(block);
  }

  [[nodiscard]] Bytes largest_free() const {
    const CachingAllocator* cache = memory_.as_caching();
    return cache != nullptr ? cache->largest_cached_block() : memory_.largest_free_block();
  }

  [[nodiscard]] std::vector<MemoryBlock> all_held() const {
    std::vector<MemoryBlock> held;
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      if (states_[b] != State::absent) held.push_back(blocks_[b]);
    return held;
  }

  std::vector<NamedCut> named_cuts(std::size_t& count) const {
    const std::vector<CutSegment> cut = cut_segments(memory_);
    count = cut.size();
    std::vector<NamedCut> named;
    if (cut.empty()) return named;
    std::map<std::uint32_t, std::uint32_t> by_handle;
    for (std::uint32_t b = 0; b < blocks_.size(); ++b)
      if (states_[b] != State::absent && blocks_[b].requested > Bytes{})
        by_handle.emplace(blocks_[b].handle, b);
    for (const CutSegment& it : cut) {
      if (named.size() == kMostCutSegments) break;
      NamedCut& kept = named.emplace_back(NamedCut{it.segment, {}, 0});
      for (const MemoryPiece& keeper : it.keepers) {
        if (kept.keepers.size() < kMostKeepersNamed)
          kept.keepers.push_back(trace_.blocks[by_handle.at(keeper.handle)]);
        else
          ++kept.others;
      }
    }
    return named;
  }

  void tell_segments() {
    if (listener_ == nullptr) return;
    for (const SegmentEvent& event : memory_.take_segment_events())
      listener_->segment_changed(event);
  }

  void tell_step(ReplayStep& what) {
    if (listener_ == nullptr) return;
    const AllocatorCounters counters = memory_.counters();
    what.now = counters.now;
    what.inactive_split = counters.inactive_split;
    what.segments = counters.segments;
    listener_->stepped(done_.steps, what);
  }

  const Trace& trace_;
  Allocator memory_;
  ReplayListener* listener_;
  std::vector<MemoryBlock> blocks_;  ///< by block of the trace
  std::vector<State> states_;
  std::vector<std::uint32_t> awaited_;
  Bytes load_;
  Replayed done_;
};

}  // namespace

Replayed replay(const Trace& trace, Bytes capacity, const AllocatorSettings& settings,
                const std::string& origin, ReplayListener* listener) {
  try {
    return TracePlayer(trace, capacity, settings, listener).run();
  } catch (const QuantityOverflow&) {
    Diagnostics diagnostics;
    diagnostics.error({origin}, "its sizes add up to more than 9.2 EB");
    diagnostics.throw_if_errors();
    throw;
  }
}

}  // namespace plimsoll
