/// What a program asked of an allocator, one request after the other.
///
/// As a file: a list of
///
///   {"op": "alloc", "id": "x", "bytes": 1024, "stream": 0}     `size` is read like `bytes`; stream 0
///   {"op": "free", "id": "x"}
///   {"op": "record_stream", "id": "x", "stream": 1}            another stream works on it, too
///   {"op": "events_complete"}                                  all streams are done with what was
///                                                              freed before
///
/// or a mapping with that list as `steps`, `trace` or `operations`, and the size of the memory as
/// `capacity` (bytes), or as `cap` of `settings`. Other keys are not looked at. An id is a text or a
/// number, and may be used again once it was freed.
#pragma once

#include "base/document.hpp"
#include "base/quantity.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct TraceStep {
  enum class Op : std::uint8_t {
    alloc,
    attempt,          ///< of a request that was refused: given back at once where it is granted
    free,             ///< awaited, if other streams were recorded
    record_stream,    ///< of `block`
    complete,         ///< the other streams are done with `block`
    events_complete,  ///< and with all
  };
  Op op = Op::alloc;
  std::uint32_t block = 0;   ///< in Trace::blocks
  Bytes bytes;               ///< of alloc and attempt
  std::uint32_t stream = 0;  ///< of alloc, attempt and record_stream
};

struct Trace {
  std::vector<std::string> blocks;  ///< names; each block is allocated once
  std::vector<TraceStep> steps;
  std::optional<Bytes> capacity;  ///< of the memory, where it is known
};

inline constexpr Bytes kLargestTraced{std::int64_t{1} << 53};
inline constexpr std::uint32_t kMostTracedStreams = 1'000'000;

/// Throws InputError with all that is wrong. O(steps log steps).
[[nodiscard]] Trace read_trace(const Node& document);
[[nodiscard]] Trace load_trace(const std::filesystem::path& path);

[[nodiscard]] const char* to_text(TraceStep::Op op);

}  // namespace plimsoll
