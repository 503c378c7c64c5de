#include "memory/snapshot/snapshot_recorder.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <set>
#include <utility>

namespace plimsoll {

namespace {

using Action = SnapshotEvent::Action;

constexpr std::int64_t kFirstAddress = std::int64_t{1} << 32;
constexpr std::int64_t kMostSpace = std::int64_t{1} << 42;  ///< of an expandable segment
constexpr std::int64_t kPage = 20 << 20;

std::int64_t space_for(Bytes capacity) {
  if (capacity > Bytes{kMostSpace / 2}) return kMostSpace;
  return (capacity.count() + capacity.count() / 8 + kPage) / kPage * kPage;
}

}  // namespace

SnapshotRecorder::SnapshotRecorder(Bytes capacity, const AllocatorSettings& settings,
                                   std::string origin)
    : space_(space_for(capacity)),
      is_arena_(is_arena(settings.kind)),
      arena_(capacity.is_unlimited()
                 ? Bytes{}
                 : Bytes{capacity.count() - capacity.count() % settings.alignment.count()}),
      origin_(std::move(origin)),
      next_address_(kFirstAddress) {
  assert(settings.kind != AllocatorKind::ideal);
}

void SnapshotRecorder::add(SnapshotEvent event, const Note& note) {
  event.time_us = note.time_us;
  event.name = note.name;
  event.category = note.category;
  events_.push_back(std::move(event));
}

// --- segments ----------------------------------------------------------------------------------

const SnapshotRecorder::Base& SnapshotRecorder::base_of(const SegmentEvent& event) {
  const auto [it, is_new] = bases_.try_emplace(event.segment);
  if (!is_new) return it->second;
  it->second = {next_address_, event.stream};
  const std::int64_t size = event.is_mapping ? space_ : event.size.count();
  if (size >= kEndOfAddresses - next_address_)
    refuse({origin_}, "its segments take addresses beyond 2^53, which snapshots cannot have");
  next_address_ += size;
  return it->second;
}

void SnapshotRecorder::segment_changed(const SegmentEvent& event, const Note& note) {
  if (event.is_mapping && event.offset + event.size > Bytes{space_})
    throw InputError(
        {{Severity::error,
          {origin_},
          "an expandable segment takes more than 4 TiB of addresses, which is all that "
          "a snapshot here has for it",
          ""}});
  const Base base = base_of(event);
  const std::int64_t address = base.address + event.offset.count(), size = event.size.count();
  if (event.is_taken)
    mapped_.take({address, size, {base.stream, event.is_small, event.is_mapping}});
  else
    mapped_.give_back(address, address + size, [](const auto& range) { return range.what; });
  const Action taken = event.is_mapping ? Action::segment_map : Action::segment_alloc;
  const Action given_back = event.is_mapping ? Action::segment_unmap : Action::segment_free;
  add({.action = event.is_taken ? taken : given_back,
       .address = address,
       .size = size,
       .stream = base.stream},
      note);
}

// --- blocks ------------------------------------------------------------------------------------

void SnapshotRecorder::taken(const MemoryBlock& block, const MemoryPiece& piece, const Note& note) {
  Base base{kFirstAddress, 0};
  if (!is_arena_) base = bases_.at(piece.segment);
  const std::int64_t address = base.address + piece.offset.count();
  held_[block.handle] = {address,   piece.size.count(), block.requested.count(), base.stream, false,
                         note.name, note.category};
  if (is_arena_) arena_ = std::max(arena_, piece.offset + piece.size);
  add({.action = Action::alloc,
       .address = address,
       .size = block.requested.count(),
       .stream = base.stream},
      note);
}

void SnapshotRecorder::freed(const MemoryBlock& block, bool is_awaited, const Note& note) {
  Held& held = held_.at(block.handle);
  held.is_awaited = true;
  add({.action = Action::free_requested,
       .address = held.address,
       .size = held.requested,
       .stream = held.stream},
      {held.name, held.category, note.time_us});
  if (!is_awaited) completed(block, note);
}

void SnapshotRecorder::completed(const MemoryBlock& block, const Note& note) {
  const auto held = held_.find(block.handle);
  assert(held != held_.end() && held->second.is_awaited);
  const Held& it = held->second;
  add({.action = Action::free_completed,
       .address = it.address,
       .size = it.requested,
       .stream = it.stream},
      {it.name, it.category, note.time_us});
  held_.erase(held);
}

void SnapshotRecorder::refused(std::uint32_t stream, Bytes rounded, Bytes left, const Note& note) {
  const std::int64_t most = kEndOfAddresses - 1;
  add({.action = Action::oom,
       .size = std::min(rounded.count(), most),
       .stream = stream,
       .device_free = std::min(left.count(), most)},
      note);
}

// --- the end -----------------------------------------------------------------------------------

SnapshotDevice SnapshotRecorder::finish() {
  if (is_arena_ && arena_ > Bytes{}) {
    const SegmentEvent whole{.size = arena_};
    std::vector<SnapshotEvent> after = std::exchange(events_, {});
    segment_changed(whole, after.empty() ? Note{} : Note{"", "", after.front().time_us});
    events_.insert(events_.end(), std::make_move_iterator(after.begin()),
                   std::make_move_iterator(after.end()));
  }
  const bool has_category = std::ranges::any_of(
      events_, [](const SnapshotEvent& event) { return !event.category.empty(); });
  if (has_category)
    for (SnapshotEvent& event : events_)
      if (event.category.empty()) event.category = "unknown";
  SnapshotDevice device{segments(), std::move(events_)};
  const std::vector<SnapshotBlock> held = blocks();
  auto next = held.begin();
  for (SnapshotSegment& segment : device.segments) {
    std::int64_t end = segment.address;
    const auto add_hole = [&](std::int64_t to) {
      if (to > end) segment.blocks.push_back({.address = end, .size = to - end});
    };
    for (; next != held.end() && next->address < segment.address + segment.size; ++next) {
      add_hole(next->address);
      end = next->address + next->size;
      segment.blocks.push_back(*next);
    }
    add_hole(segment.address + segment.size);
  }
  return device;
}

/// Ranges that adjoin within an expandable segment are one.
std::vector<SnapshotSegment> SnapshotRecorder::segments() const {
  std::set<std::int64_t> begins;
  for (const auto& [number, base] : bases_) begins.insert(base.address);
  std::vector<SnapshotSegment> all;
  for (const auto& [address, range] : mapped_.ranges()) {
    const Mapped& it = range.what;
    const bool goes_on = it.is_expandable && !begins.contains(address) && !all.empty() &&
                         all.back().address + all.back().size == address;
    if (goes_on)
      all.back().size += range.size;
    else
      all.push_back({address, range.size, it.stream, it.is_small, it.is_expandable, {}});
  }
  return all;
}

/// Those in use or awaited, in the order of addresses.
std::vector<SnapshotBlock> SnapshotRecorder::blocks() const {
  std::vector<SnapshotBlock> all;
  for (const auto& [handle, held] : held_)
    all.push_back({held.address, held.size, held.requested,
                   held.is_awaited ? SnapshotBlock::State::active_pending_free
                                   : SnapshotBlock::State::active_allocated,
                   held.name});
  std::ranges::sort(all, {}, &SnapshotBlock::address);
  return all;
}

// --- replays -----------------------------------------------------------------------------------

namespace {

class RecordingListener final : public ReplayListener {
 public:
  RecordingListener(const Trace& trace, SnapshotRecorder& recorder)
      : trace_(trace), recorder_(recorder) {}

  void segment_changed(const SegmentEvent& event) override { recorder_.segment_changed(event, {}); }
  void granted(const TraceStep& step, const MemoryBlock& block, const MemoryPiece& piece) override {
    recorder_.taken(block, piece, {trace_.blocks[step.block], "", {}});
  }
  void freed(const MemoryBlock& block, bool is_awaited) override {
    recorder_.freed(block, is_awaited, {});
  }
  void completed(const MemoryBlock& block) override { recorder_.completed(block, {}); }
  void refused(const TraceStep& step, Bytes rounded, Bytes left) override {
    recorder_.refused(step.stream, rounded, left, {});
  }

 private:
  const Trace& trace_;
  SnapshotRecorder& recorder_;
};

}  // namespace

SnapshotDevice record_replay(const Trace& trace, Bytes capacity, const AllocatorSettings& settings,
                             const std::string& origin) {
  SnapshotRecorder recorder(capacity, settings, origin);
  RecordingListener listener(trace, recorder);
  (void)replay(trace, capacity, settings, origin, &listener);
  return recorder.finish();
}

}  // namespace plimsoll
