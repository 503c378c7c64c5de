#include "memory/trace/trace.hpp"

#include "base/format.hpp"
#include "base/names_hint.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr DocumentLimits kTraceLimits{.bytes = std::uintmax_t{256} << 20, .nodes = 16'000'000};

class TraceReader {
 public:
  explicit TraceReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  Trace read(const Node& document) {
    const Node* steps = &document;
    if (document.is_mapping()) {
      read_capacity(document);
      steps = list_of_steps(document);
    }
    if (steps == nullptr || !steps->is_sequence()) {
      const Node& found = steps == nullptr ? document : *steps;
      diagnostics_.error(found.where(),
                         fmt::format("found {}, expected a list of steps, or a mapping with it as "
                                     "`steps`, `trace` or `operations`",
                                     found.describe()));
      return std::move(trace_);
    }
    if (document.is_mapping()) refuse_misspelt(document, "capacity");
    for (const Node& step : steps->items()) read_step(step);
    return std::move(trace_);
  }

 private:
  static const Node* list_of_steps(const Node& document) {
    for (const char* key : {"steps", "trace", "operations"})
      if (const Node* steps = document.find(key)) return steps;
    return nullptr;
  }

  void read_capacity(const Node& document) {
    const Node* capacity = document.find("capacity");
    if (capacity == nullptr)
      if (const Node* settings = document.find("settings"); settings && settings->is_mapping())
        capacity = settings->find("cap");
    if (capacity == nullptr) return;
    if (const auto bytes = integer(0, kLargestTraced.count()).read(*capacity, diagnostics_))
      trace_.capacity = Bytes{*bytes};
  }

  void read_step(const Node& step) {
    if (!step.is_mapping()) {
      diagnostics_.error(step.where(), fmt::format("found {}, expected a step such as {{\"op\": "
                                                   "\"free\", \"id\": \"x\"}}",
                                                   step.describe()));
      return;
    }
    using Op = TraceStep::Op;
    static const Format<Op> kOps = one_of<Op>({{"alloc", Op::alloc},
                                               {"free", Op::free},
                                               {"record_stream", Op::record_stream},
                                               {"events_complete", Op::events_complete}});
    const Node* named = required(step, "op");
    const auto op = named == nullptr ? std::nullopt : kOps.read(*named, diagnostics_);
    if (!op) return;
    if (op == Op::alloc) refuse_misspelt(step, "stream");
    TraceStep it{.op = *op};
    if (it.op != Op::events_complete && !read_block(step, it)) return;
    if (it.op == Op::record_stream && required(step, "stream") == nullptr) return;
    if (it.op == Op::alloc || it.op == Op::record_stream) it.stream = read_stream(step);
    trace_.steps.push_back(it);
  }

  /// The block of a step, and of an allocation its size.
  bool read_block(const Node& step, TraceStep& it) {
    const Node* id = required(step, "id");
    if (id == nullptr) return false;
    if (!id->is_scalar()) {
      diagnostics_.error(id->where(),
                         fmt::format("found {}, expected a text or a number", id->describe()));
      return false;
    }
    const auto live = live_.find(id->scalar());
    if (it.op == TraceStep::Op::alloc) return read_new(step, *id, live != live_.end(), it);
    if (live == live_.end()) {
      diagnostics_.error(id->where(),
                         fmt::format("there is no block {} at this step", id->describe()),
                         hint_of_names(id->scalar(), some_live()));
      return false;
    }
    it.block = live->second;
    if (it.op == TraceStep::Op::free) live_.erase(live);
    return true;
  }

  bool read_new(const Node& step, const Node& id, bool is_live, TraceStep& it) {
    if (is_live) {
      diagnostics_.error(id.where(), fmt::format("block {} is there already; expected that it is "
                                                 "freed before it is allocated again",
                                                 id.describe()));
      return false;
    }
    const Node* size = step.find("bytes");
    if (size == nullptr) size = step.find("size");
    if (size == nullptr) size = required(step, "bytes");
    // Known even if its size is not, so that its other steps are no errors, too.
    it.block = static_cast<std::uint32_t>(trace_.blocks.size());
    trace_.blocks.push_back(id.scalar());
    live_.emplace(id.scalar(), it.block);
    const auto bytes = size == nullptr
                           ? std::nullopt
                           : integer(0, kLargestTraced.count()).read(*size, diagnostics_);
    if (bytes) it.bytes = Bytes{*bytes};
    return bytes.has_value();
  }

  /// Numbered as they appear, so that any number may stand for a stream.
  std::uint32_t read_stream(const Node& step) {
    const Node* stream = step.find("stream");
    std::int64_t written = 0;
    if (stream != nullptr) {
      const auto number = integer(0, kLargestTraced.count()).read(*stream, diagnostics_);
      if (!number) return 0;
      written = *number;
    }
    const auto [it, is_new] =
        streams_.emplace(written, static_cast<std::uint32_t>(streams_.size()));
    if (is_new && streams_.size() > kMostTracedStreams)
      diagnostics_.error(step.where(),
                         fmt::format("found more than {} streams", kMostTracedStreams));
    return it->second;
  }

  const Node* required(const Node& step, const char* key) {
    const Node* value = step.find(key);
    if (value == nullptr) miss(step, key);
    return value;
  }

  /// Other keys are not looked at, unless one may be this one, which has a default, misspelt.
  void refuse_misspelt(const Node& mapping, const std::string& key) {
    if (mapping.find(key) == nullptr) (void)named_like(mapping, key);
  }

  /// Whether a key is told of that is not `key` and near to it.
  bool named_like(const Node& mapping, const std::string& key) {
    const std::array wanted{key};
    const auto near = std::ranges::find_if(mapping.entries(), [&](const Node::Entry& it) {
      return !nearest(it.key.scalar(), wanted).empty();
    });
    if (near == mapping.entries().end()) return false;
    diagnostics_.error(near->key.where(),
                       fmt::format("found {}, expected `{}`", near->key.describe(), key));
    return true;
  }

  void miss(const Node& mapping, const std::string& key) {
    if (!named_like(mapping, key))
      diagnostics_.error(mapping.where(), fmt::format("`{}` is missing", key));
  }

  std::vector<std::string> some_live() const {
    constexpr std::size_t kMost = 100;
    std::vector<std::string> names;
    for (const auto& [name, block] : live_) {
      if (names.size() == kMost) break;
      names.push_back(name);
    }
    return names;
  }

  Diagnostics& diagnostics_;
  Trace trace_;
  std::map<std::string, std::uint32_t, std::less<>> live_;
  std::map<std::int64_t, std::uint32_t> streams_;
};

}  // namespace

Trace read_trace(const Node& document) {
  Diagnostics diagnostics;
  Trace trace = TraceReader(diagnostics).read(document);
  diagnostics.throw_if_errors();
  return trace;
}

Trace load_trace(const std::filesystem::path& path) {
  return read_trace(read_document(path, kTraceLimits));
}

const char* to_text(TraceStep::Op op) {
  constexpr std::array names{"alloc",         "attempt",  "free",
                             "record_stream", "complete", "events_complete"};
  return names[static_cast<std::size_t>(op)];
}

}  // namespace plimsoll
