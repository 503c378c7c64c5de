#include "memory/snapshot/pickle.hpp"
#include "memory/snapshot/snapshot.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr const char* kFrameFile = "plimsoll";

const char* to_text(SnapshotBlock::State state) {
  constexpr std::array names{"active_allocated", "active_pending_free", "inactive"};
  return names[static_cast<std::size_t>(state)];
}

const char* to_text(SnapshotEvent::Action action) {
  constexpr std::array names{"alloc",        "free_requested", "free_completed", "segment_alloc",
                             "segment_free", "segment_map",    "segment_unmap",  "oom",
                             "user_defined"};
  return names[static_cast<std::size_t>(action)];
}

class SnapshotWriter {
 public:
  std::string run(const Snapshot& snapshot) {
    out_.begin_dictionary();
    out_.text("segments");
    out_.begin_list();
    for (std::size_t d = 0; d < snapshot.devices.size(); ++d)
      for (const SnapshotSegment& segment : snapshot.devices[d].segments) write(segment, d);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    for (const SnapshotDevice& device : snapshot.devices) {
      out_.begin_list();
      for (const SnapshotEvent& event : device.events) write(event);
      out_.end_list();
    }
    out_.end_list();
    out_.end_dictionary();
    return out_.finish();
  }

 private:
  void entry(const char* key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void entry(const char* key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }

  void write(const SnapshotSegment& segment, std::size_t device) {
    std::int64_t allocated = 0, active = 0, requested = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == SnapshotBlock::State::inactive) continue;
      active += block.size;
      requested += block.requested;
      if (block.state == SnapshotBlock::State::active_allocated) allocated += block.size;
    }
    out_.begin_dictionary();
    entry("device", static_cast<std::int64_t>(device));
    entry("address", segment.address);
    entry("total_size", segment.size);
    entry("allocated_size", allocated);
    entry("active_size", active);
    entry("requested_size", requested);
    entry("stream", segment.stream);
    entry("segment_type", segment.is_small ? "small" : "large");
    entry("is_expandable", segment.is_expandable ? 1 : 0);
    write_frames("");
    out_.text("blocks");
    out_.begin_list();
    for (const SnapshotBlock& block : segment.blocks) write(block);
    out_.end_list();
    out_.end_dictionary();
  }

  void write(const SnapshotBlock& block) {
    out_.begin_dictionary();
    entry("address", block.address);
    entry("size", block.size);
    entry("requested_size", block.requested);
    entry("state", to_text(block.state));
    write_frames(block.name);
    out_.end_dictionary();
  }

  void write(const SnapshotEvent& event) {
    out_.begin_dictionary();
    entry("action", to_text(event.action));
    entry("addr", event.address);
    entry("size", event.size);
    entry("stream", event.stream);
    if (event.time_us) entry("time_us", *event.time_us);
    if (event.action == SnapshotEvent::Action::oom) entry("device_free", event.device_free);
    if (!event.category.empty()) entry("category", event.category);
    write_frames(event.name);
    out_.end_dictionary();
  }

  void write_frames(const std::string& name) {
    out_.text("frames");
    out_.begin_list();
    if (!name.empty()) {
      out_.begin_dictionary();
      entry("filename", kFrameFile);
      entry("line", 0);
      entry("name", name);
      out_.end_dictionary();
    }
    out_.end_list();
  }

  PickleWriter out_;
};

}  // namespace

std::string to_pickle(const Snapshot& snapshot) {
  return SnapshotWriter().run(snapshot);
}

}  // namespace plimsoll
