#include "report/trace/trace_sink.hpp"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

/// Slices are pairs of `B` and `E` and no `X`: a reader that rounds a start and a duration by
/// itself could let an `X` reach into the next one.
class ChromeSink final : public TraceSink {
 public:
  explicit ChromeSink(std::ostream& out) : out_(out) {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
  }

  void run(TrackId group, const std::string& name) override {
    place(group, group);
    describe(group, "process_name", {{"name", name}});
    describe(group, "process_sort_index", {{"sort_index", group}});
  }

  /// There are no groups below a process.
  void group(TrackId /*group*/, TrackId /*run*/, const std::string& /*name*/) override {}

  void slices(TrackId track, TrackId run, const std::string& name) override {
    place(track, run);
    describe(track, "thread_name", {{"name", name}});
    describe(track, "thread_sort_index", {{"sort_index", track}});
  }

  void counter(TrackId track, TrackId run, TrackId /*group*/, const std::string& name,
               CounterUnit unit) override {
    place(track, run);
    counters_[track] = {name, unit == CounterUnit::bytes ? "bytes" : "W"};
  }

  void begin(TrackId track, const TraceSlice& slice) override {
    Json event = happen("B", track, slice.start);
    event["name"] = slice.name;
    event["cat"] = slice.category;
    Json& args = event["args"];
    args["start_ps"] = slice.start.count();
    args["duration_ps"] = (slice.end - slice.start).count();
    if (slice.moved) args["bytes"] = slice.moved->count();
    write(event);
    for (const std::uint64_t flow : slice.flows_out) join("s", track, slice.start, flow);
    for (const std::uint64_t flow : slice.flows_in) join("f", track, slice.start, flow);
  }

  void end(TrackId track, const TraceSlice& slice) override {
    write(happen("E", track, slice.end));
  }

  void instant(TrackId run, Time time, const std::string& name) override {
    Json event = happen("i", run, time);
    event["name"] = name;
    event["s"] = "p";
    write(event);
  }

  void set(TrackId counter, Time time, Bytes value) override {
    count(counter, time, value.count());
  }

  void set(TrackId counter, Time time, Power value) override {
    count(counter, time, in_watts(value));
  }

  void finish() override { out_ << "\n]}\n"; }

 private:
  struct Counter {
    std::string name, unit;
  };

  void place(TrackId track, TrackId run) {
    if (run_of_.size() <= track) {
      run_of_.resize(track + 1);
      counters_.resize(track + 1);
    }
    run_of_[track] = run;
  }

  void describe(TrackId track, const char* what, Json args) {
    write({{"ph", "M"},
           {"pid", run_of_[track]},
           {"tid", track},
           {"name", what},
           {"args", std::move(args)}});
  }

  [[nodiscard]] Json happen(const char* phase, TrackId track, Time time) const {
    return {{"ph", phase},
            {"pid", run_of_[track]},
            {"tid", track},
            {"ts", static_cast<double>(floor_ns(time)) / 1000.0}};
  }

  void join(const char* phase, TrackId track, Time time, std::uint64_t flow) {
    Json event = happen(phase, track, time);
    event["name"] = "copy";
    event["cat"] = "flow";
    event["id"] = flow;
    if (*phase == 'f') event["bp"] = "e";
    write(event);
  }

  void count(TrackId counter, Time time, const Json& value) {
    Json event = happen("C", counter, time);
    event["name"] = counters_[counter].name;
    event["args"][counters_[counter].unit] = value;
    write(event);
  }

  void write(const Json& event) {
    out_ << (first_ ? "\n" : ",\n") << event.dump(-1, ' ', false, Json::error_handler_t::replace);
    first_ = false;
  }

  std::ostream& out_;
  std::vector<TrackId> run_of_;    ///< by track
  std::vector<Counter> counters_;  ///< by track
  bool first_ = true;
};

}  // namespace

std::unique_ptr<TraceSink> chrome_sink(std::ostream& out) {
  return std::make_unique<ChromeSink>(out);
}

}  // namespace plimsoll
