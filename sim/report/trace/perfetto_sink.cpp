#include "base/utf8.hpp"
#include "report/trace/trace_sink.hpp"

#include <report/perfetto.pb.h>

namespace plimsoll {

namespace {

namespace pb = perfetto;

/// All packets are of one sequence: any fixed number but 0.
constexpr std::uint32_t kSequence = 1;
/// Packets that are kept before they are written: enough to make writing cheap.
constexpr int kBatch = 256;

class PerfettoSink final : public TraceSink {
 public:
  explicit PerfettoSink(std::ostream& out) : out_(out) {}

  void run(TrackId group, const std::string& name) override {
    pb::TrackDescriptor& track = describe(group, 0);
    track.set_child_ordering(pb::TrackDescriptor::EXPLICIT);
    track.mutable_process()->set_pid(static_cast<std::int32_t>(++runs_));
    track.mutable_process()->set_process_name(valid_utf8(name));
  }

  void group(TrackId group, TrackId run, const std::string& name) override {
    pb::TrackDescriptor& track = describe(group, run);
    track.set_name(valid_utf8(name));
    track.set_child_ordering(pb::TrackDescriptor::EXPLICIT);
  }

  void slices(TrackId track, TrackId run, const std::string& name) override {
    describe(track, run).set_name(valid_utf8(name));
  }

  void counter(TrackId track, TrackId /*run*/, TrackId group, const std::string& name,
               CounterUnit unit) override {
    pb::TrackDescriptor& descriptor = describe(track, group);
    descriptor.set_name(valid_utf8(name));
    pb::CounterDescriptor& counter = *descriptor.mutable_counter();
    if (unit == CounterUnit::bytes)
      counter.set_unit(pb::CounterDescriptor::UNIT_SIZE_BYTES);
    else
      counter.set_unit_name("W");
    counter.set_y_axis_share_key(std::to_string(group));
  }

  void begin(TrackId track, const TraceSlice& slice) override {
    pb::TrackEvent& event = happen(pb::TrackEvent::TYPE_SLICE_BEGIN, track, slice.start);
    event.set_name(valid_utf8(slice.name));
    event.add_categories(slice.category);
    annotate(event, "start_ps", slice.start.count());
    annotate(event, "duration_ps", (slice.end - slice.start).count());
    if (slice.moved) annotate(event, "bytes", slice.moved->count());
    for (const std::uint64_t flow : slice.flows_out) event.add_flow_ids(flow);
    for (const std::uint64_t flow : slice.flows_in) event.add_terminating_flow_ids(flow);
  }

  void end(TrackId track, const TraceSlice& slice) override {
    happen(pb::TrackEvent::TYPE_SLICE_END, track, slice.end);
  }

  void instant(TrackId run, Time time, const std::string& name) override {
    happen(pb::TrackEvent::TYPE_INSTANT, run, time).set_name(valid_utf8(name));
  }

  void set(TrackId counter, Time time, Bytes value) override {
    happen(pb::TrackEvent::TYPE_COUNTER, counter, time).set_counter_value(value.count());
  }

  void set(TrackId counter, Time time, Power value) override {
    happen(pb::TrackEvent::TYPE_COUNTER, counter, time).set_double_counter_value(in_watts(value));
  }

  void finish() override { write(); }

 private:
  pb::TracePacket& packet() {
    if (trace_.packet_size() == kBatch) write();
    pb::TracePacket& packet = *trace_.add_packet();
    packet.set_trusted_packet_sequence_id(kSequence);
    return packet;
  }

  /// A track below `parent` (0: below none), after those that were described before.
  pb::TrackDescriptor& describe(TrackId track, TrackId parent) {
    pb::TrackDescriptor& descriptor = *packet().mutable_track_descriptor();
    descriptor.set_uuid(track);
    if (parent != 0) {
      descriptor.set_parent_uuid(parent);
      descriptor.set_sibling_order_rank(static_cast<std::int32_t>(track));
    }
    return descriptor;
  }

  pb::TrackEvent& happen(pb::TrackEvent::Type type, TrackId track, Time time) {
    pb::TracePacket& it = packet();
    it.set_timestamp(static_cast<std::uint64_t>(floor_ns(time)));
    pb::TrackEvent& event = *it.mutable_track_event();
    event.set_type(type);
    event.set_track_uuid(track);
    return event;
  }

  static void annotate(pb::TrackEvent& event, const char* name, std::int64_t value) {
    pb::DebugAnnotation& annotation = *event.add_debug_annotations();
    annotation.set_name(name);
    annotation.set_uint_value(static_cast<std::uint64_t>(value));
  }

  void write() {
    trace_.SerializeToOstream(&out_);
    trace_.Clear();
  }

  std::ostream& out_;
  pb::Trace trace_;  ///< the packets that are not written yet
  std::uint32_t runs_ = 0;
};

}  // namespace

std::unique_ptr<TraceSink> perfetto_sink(std::ostream& out) {
  return std::make_unique<PerfettoSink>(out);
}

}  // namespace plimsoll
