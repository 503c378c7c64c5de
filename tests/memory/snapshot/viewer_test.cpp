// What the public viewer's reader (PyTorch's memory_viz page) takes from a snapshot, key by key: each has
// to be there, and of the kind that it computes with.
#include "memory/random_traces.hpp"
#include "memory/snapshot/pickle.hpp"
#include "memory/snapshot/snapshot.hpp"
#include "memory/snapshot/snapshot_recorder.hpp"

#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

class ViewerReader {
 public:
  explicit ViewerReader(const std::string& bytes) : pickle_(parse_pickle(bytes, "s")) {}

  void read() {
    const PickleValue& root = pickle_.root();
    REQUIRE(root.kind == PickleKind::dictionary);
    const PickleValue& traces = list_in(root, "device_traces");
    for (const std::uint32_t trace : pickle_.items(traces)) {
      REQUIRE(pickle_[trace].kind == PickleKind::list);
      for (const std::uint32_t event : pickle_.items(pickle_[trace])) read_event(pickle_[event]);
    }
    const PickleValue& segments = list_in(root, "segments");
    for (const std::uint32_t segment : pickle_.items(segments)) {
      read_segment(pickle_[segment]);
      // The view of a device looks its number up among the traces.
      REQUIRE(static_cast<std::size_t>(number_in(pickle_[segment], "device")) <
              pickle_.items(traces).size());
    }
    // Where any event has a category, the viewer fails to add this one.
    if (!categories_.empty()) REQUIRE(categories_.contains("unknown"));
  }

  [[nodiscard]] const std::map<std::string, int>& actions() const { return actions_; }
  [[nodiscard]] const std::set<std::string>& categories() const { return categories_; }
  [[nodiscard]] int frames() const { return frames_; }

 private:
  const PickleValue& value_in(const PickleValue& dictionary, const char* key) {
    INFO(key);
    REQUIRE(dictionary.kind == PickleKind::dictionary);
    const PickleValue* value = pickle_.find(dictionary, key);
    REQUIRE(value != nullptr);
    return *value;
  }

  const PickleValue& list_in(const PickleValue& dictionary, const char* key) {
    const PickleValue& value = value_in(dictionary, key);
    REQUIRE(value.kind == PickleKind::list);
    return value;
  }

  /// Numbers become doubles, whole up to 2^53.
  std::int64_t number_in(const PickleValue& dictionary, const char* key) {
    const PickleValue& value = value_in(dictionary, key);
    INFO(key);
    REQUIRE(value.kind == PickleKind::integer);
    REQUIRE(value.integer >= 0);
    REQUIRE(value.integer <= kEndOfAddresses);
    return value.integer;
  }

  std::string text_in(const PickleValue& dictionary, const char* key) {
    const PickleValue& value = value_in(dictionary, key);
    REQUIRE(value.kind == PickleKind::text);
    return std::string(pickle_.text(value));
  }

  /// Filtered by name and file, which are searched as texts, and shown with the line.
  void read_frames(const PickleValue& owner) {
    for (const std::uint32_t frame : pickle_.items(list_in(owner, "frames"))) {
      (void)text_in(pickle_[frame], "filename");
      (void)text_in(pickle_[frame], "name");
      (void)number_in(pickle_[frame], "line");
      ++frames_;
    }
  }

  void read_event(const PickleValue& event) {
    static const std::set<std::string> kActions{
        "alloc",        "free_requested", "free_completed", "segment_alloc",
        "segment_free", "segment_map",    "segment_unmap",  "oom"};
    const std::string action = text_in(event, "action");
    REQUIRE(kActions.contains(action));
    ++actions_[action];
    (void)number_in(event, "addr");
    (void)number_in(event, "size");
    (void)number_in(event, "stream");
    if (action == "oom") (void)number_in(event, "device_free");
    if (pickle_.find(event, "category") != nullptr) categories_.insert(text_in(event, "category"));
    read_frames(event);
  }

  void read_segment(const PickleValue& segment) {
    static const std::set<std::string> kStates{"active_allocated", "active_pending_free",
                                               "inactive"};
    (void)number_in(segment, "address");
    (void)number_in(segment, "stream");
    read_frames(segment);
    std::int64_t tiled = 0;
    for (const std::uint32_t it : pickle_.items(list_in(segment, "blocks"))) {
      const PickleValue& block = pickle_[it];
      REQUIRE(kStates.contains(text_in(block, "state")));
      REQUIRE(number_in(block, "requested_size") <= number_in(block, "size"));
      tiled += number_in(block, "size");
      // Without it the viewer takes an older form, with a history.
      read_frames(block);
    }
    REQUIRE(tiled == number_in(segment, "total_size"));
  }

  Pickle pickle_;
  std::map<std::string, int> actions_;
  std::set<std::string> categories_;
  int frames_ = 0;
};

}  // namespace

TEST_CASE("a snapshot has every key that the public viewer reads, of its kind") {
  std::map<std::string, int> actions;
  for (const auto& [name, settings] : test::allocators_with_addresses()) {
    INFO(name);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Bytes capacity{static_cast<std::int64_t>(100 + 60 * seed) << 20};
      const Trace trace = test::random_trace(seed, 200, false);
      ViewerReader viewer(to_pickle({{record_replay(trace, capacity, settings, "t")}}));
      viewer.read();
      CHECK(viewer.frames() > 0);
      for (const auto& [action, count] : viewer.actions()) actions[action] += count;
    }
  }
  // All of them have been seen.
  CHECK(actions.size() == 8);
}

TEST_CASE("categories of a snapshot are those that the public viewer can colour") {
  SnapshotDevice device;
  device.segments = {{4096, 1024, 0, true, false, {{4096, 1024}}}};
  for (const char* category : {"parameter", "unknown"}) {
    device.events.push_back({.action = SnapshotEvent::Action::alloc,
                             .address = 4096,
                             .size = 100,
                             .category = category});
    device.events.push_back(
        {.action = SnapshotEvent::Action::free_requested, .address = 4096, .size = 100});
  }
  ViewerReader viewer(to_pickle({{device}}));
  viewer.read();
  CHECK(viewer.categories() == std::set<std::string>{"parameter", "unknown"});
}

}  // namespace plimsoll
