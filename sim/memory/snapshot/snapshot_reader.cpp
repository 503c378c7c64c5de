#include "base/diagnostic.hpp"
#include "base/whole_file.hpp"
#include "memory/snapshot/pickle.hpp"
#include "memory/snapshot/snapshot.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::uintmax_t kMostSnapshotBytes = std::uintmax_t{512} << 20;
constexpr std::size_t kMostDevices = 1024;
constexpr std::size_t kMostEntries = 4'000'000;  ///< segments, blocks and events

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, const std::string& origin)
      : pickle_(pickle), origin_(origin) {}

  Snapshot run() {
    const PickleValue& root = of_kind(pickle_.root(), PickleKind::dictionary, "a dictionary");
    const PickleValue& traces = member(root, "device_traces", PickleKind::list, "a list");
    read_segments(member(root, "segments", PickleKind::list, "a list"));
    for (std::size_t d = 0; d < pickle_.items(traces).size(); ++d) {
      const PickleValue& trace = pickle_[pickle_.items(traces)[d]];
      of_kind(trace, PickleKind::list, "a list of events");
      SnapshotDevice& it = device(static_cast<std::int64_t>(d), trace);
      for (const std::uint32_t e : pickle_.items(trace)) {
        const PickleValue& event = of_kind(pickle_[e], PickleKind::dictionary, "an event");
        count(event);
        it.events.push_back(read_event(event));
      }
    }
    return std::move(snapshot_);
  }

 private:
  [[noreturn]] void fail(const PickleValue& at, const std::string& what,
                         std::string hint = {}) const {
    refuse({origin_}, fmt::format("byte {}: {}", at.at, what), std::move(hint));
  }

  const PickleValue& of_kind(const PickleValue& value, PickleKind kind, const char* what) const {
    if (value.kind != kind)
      fail(value, fmt::format("found {}, expected {}", pickle_.describe(value), what));
    return value;
  }
  const PickleValue& member(const PickleValue& of, const char* key) const {
    const PickleValue* value = pickle_.find(of, key);
    if (value == nullptr)
      fail(of, fmt::format("found a dictionary without `{}`, expected it", key));
    return *value;
  }
  const PickleValue& member(const PickleValue& of, const char* key, PickleKind kind,
                            const char* what) const {
    const PickleValue& value = member(of, key);
    if (value.kind != kind)
      fail(value, fmt::format("found {} as `{}`, expected {}", pickle_.describe(value), key, what));
    return value;
  }
  std::int64_t number(const PickleValue& of, const char* key, std::int64_t most) const {
    const PickleValue& value = member(of, key, PickleKind::integer, "a number");
    if (value.integer < 0 || value.integer > most)
      fail(value, fmt::format("found {} as `{}`, expected 0 to {}", value.integer, key, most));
    return value.integer;
  }
  /// Entries that a pickle shares are read once for each place: what is read is counted.
  void count(const PickleValue& at) {
    if (++entries_ > kMostEntries)
      fail(at, fmt::format("found more than {} segments, blocks and events", kMostEntries));
  }
  /// Handles of streams may be any number.
  std::int64_t stream(const PickleValue& of) const {
    return member(of, "stream", PickleKind::integer, "a number").integer;
  }
  std::int64_t size(const PickleValue& of, const char* key) const {
    return number(of, key, kEndOfAddresses);
  }
  std::string_view word(const PickleValue& of, const char* key) const {
    return pickle_.text(member(of, key, PickleKind::text, "a text"));
  }

  SnapshotDevice& device(std::int64_t number, const PickleValue& at) {
    const auto d = static_cast<std::size_t>(number);
    if (d >= kMostDevices)
      fail(at, fmt::format("found device {}, expected at most {}", d, kMostDevices - 1));
    if (d >= snapshot_.devices.size()) snapshot_.devices.resize(d + 1);
    return snapshot_.devices[d];
  }

  void read_segments(const PickleValue& segments) {
    for (const std::uint32_t s : pickle_.items(segments)) {
      const PickleValue& at = of_kind(pickle_[s], PickleKind::dictionary, "a segment");
      count(at);
      SnapshotSegment it;
      it.address = size(at, "address");
      it.size = size(at, "total_size");
      it.stream = stream(at);
      if (const PickleValue* type = pickle_.find(at, "segment_type"))
        it.is_small = type->kind == PickleKind::text && pickle_.text(*type) == "small";
      if (const PickleValue* flag = pickle_.find(at, "is_expandable"))
        it.is_expandable = flag->integer != 0 &&
                           (flag->kind == PickleKind::boolean || flag->kind == PickleKind::integer);
      read_blocks(at, it);
      device(number(at, "device", kMostDevices - 1), at).segments.push_back(std::move(it));
    }
    for (SnapshotDevice& it : snapshot_.devices) {
      std::ranges::sort(it.segments, {}, &SnapshotSegment::address);
      require_apart(it.segments);
    }
  }

  void require_apart(const std::vector<SnapshotSegment>& by_address) const {
    for (std::size_t s = 1; s < by_address.size(); ++s) {
      const SnapshotSegment &below = by_address[s - 1], &above = by_address[s];
      if (below.address + below.size > above.address)
        refuse({origin_}, fmt::format("found a segment of {} B at {:#x} and another one at {:#x}, "
                                      "expected that no two overlap",
                                      below.size, below.address, above.address));
    }
  }

  void read_blocks(const PickleValue& at, SnapshotSegment& segment) {
    std::int64_t end = segment.address;
    for (const std::uint32_t b : pickle_.items(member(at, "blocks", PickleKind::list, "a list"))) {
      const PickleValue& block = of_kind(pickle_[b], PickleKind::dictionary, "a block");
      count(block);
      SnapshotBlock it{.address = end, .size = size(block, "size")};
      it.state = state_of(block);
      it.requested = it.state == SnapshotBlock::State::inactive ? 0 : it.size;
      if (it.state != SnapshotBlock::State::inactive &&
          pickle_.find(block, "requested_size") != nullptr)
        it.requested = size(block, "requested_size");
      if (it.size > segment.address + segment.size - end)
        fail(block, fmt::format("found a block of {} B, of which only {} B are in its segment",
                                it.size, segment.address + segment.size - end));
      end += it.size;
      it.name = name_of(block);
      segment.blocks.push_back(std::move(it));
    }
    if (end != segment.address + segment.size)
      fail(at, fmt::format("found blocks of {} B in a segment of {} B, expected that they tile it",
                           end - segment.address, segment.size));
  }

  /// What `names` has for the text under `key`.
  template <class Value, std::size_t count>
  Value named(const PickleValue& of, const char* key,
              const std::array<std::pair<const char*, Value>, count>& names) const {
    const std::string_view found = word(of, key);
    std::vector<std::string> all;
    for (const auto& [name, value] : names) {
      if (name == found) return value;
      all.emplace_back(name);
    }
    fail(member(of, key),
         fmt::format("found {} as `{}`, expected one of `{}`", pickle_.describe(member(of, key)),
                     key, fmt::join(all, "`, `")),
         did_you_mean(found, all));
  }

  SnapshotBlock::State state_of(const PickleValue& block) const {
    using State = SnapshotBlock::State;
    static constexpr std::array<std::pair<const char*, State>, 4> kStates{
        {{"active_allocated", State::active_allocated},
         {"active_pending_free", State::active_pending_free},
         {"active_awaiting_free", State::active_pending_free},  // its older name
         {"inactive", State::inactive}}};
    return named(block, "state", kStates);
  }

  SnapshotEvent read_event(const PickleValue& at) const {
    SnapshotEvent event;
    event.action = action_of(at);
    if (event.action == SnapshotEvent::Action::other) return event;
    if (event.action != SnapshotEvent::Action::oom) event.address = size(at, "addr");
    event.size = size(at, "size");
    event.stream = stream(at);
    if (event.action == SnapshotEvent::Action::oom) event.device_free = size(at, "device_free");
    if (const PickleValue* time = pickle_.find(at, "time_us");
        time && time->kind == PickleKind::integer)
      event.time_us = time->integer;
    if (const PickleValue* category = pickle_.find(at, "category");
        category && category->kind == PickleKind::text)
      event.category = pickle_.text(*category);
    event.name = name_of(at);
    return event;
  }

  SnapshotEvent::Action action_of(const PickleValue& at) const {
    using Action = SnapshotEvent::Action;
    static constexpr std::array<std::pair<const char*, Action>, 10> kActions{
        {{"alloc", Action::alloc},
         {"free_requested", Action::free_requested},
         {"free_completed", Action::free_completed},
         {"segment_alloc", Action::segment_alloc},
         {"segment_free", Action::segment_free},
         {"segment_map", Action::segment_map},
         {"segment_unmap", Action::segment_unmap},
         {"oom", Action::oom},
         {"snapshot", Action::other},
         {"user_defined", Action::other}}};
    return named(at, "action", kActions);
  }

  /// That of our own frame; frames of others are where the program was, not what the block is.
  std::string name_of(const PickleValue& at) const {
    const PickleValue* frames = pickle_.find(at, "frames");
    if (frames == nullptr || frames->kind != PickleKind::list || pickle_.items(*frames).size() != 1)
      return {};
    const PickleValue& frame = pickle_[pickle_.items(*frames).front()];
    if (frame.kind != PickleKind::dictionary) return {};
    const PickleValue* file = pickle_.find(frame, "filename");
    const PickleValue* name = pickle_.find(frame, "name");
    if (file == nullptr || name == nullptr || file->kind != PickleKind::text ||
        name->kind != PickleKind::text || pickle_.text(*file) != "plimsoll")
      return {};
    return std::string(pickle_.text(*name));
  }

  const Pickle& pickle_;
  const std::string& origin_;
  Snapshot snapshot_;
  std::size_t entries_ = 0;
};

}  // namespace

Snapshot parse_snapshot(std::string bytes, const std::string& origin) {
  const Pickle pickle = parse_pickle(std::move(bytes), origin);
  return SnapshotReader(pickle, origin).run();
}

Snapshot load_snapshot(const std::filesystem::path& path) {
  return parse_snapshot(read_whole_file(path, kMostSnapshotBytes, "memory snapshots"),
                        path.string());
}

}  // namespace plimsoll
