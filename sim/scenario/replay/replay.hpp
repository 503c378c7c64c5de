/// Traces of requests to an allocator, played on one or on several to compare.
///
/// A source is a trace (memory/trace/trace.hpp) or a memory snapshot of PyTorch
/// (memory/snapshot/snapshot.hpp), which its first byte tells apart.
#pragma once

#include "memory/trace/replay.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// An allocator with its settings, and what it is called: "caching, expandable_segments=true".
struct ReplayChoice {
  std::string label;
  AllocatorSettings settings;
};

/// What a command asks for. `allocators` are names, or mappings as platforms have them; `set` are
/// KEY=VALUE. Several values of one key, and several allocators, are all combined; a key goes to the
/// allocators that have it.
struct ReplayRequest {
  std::filesystem::path path;
  std::vector<std::string> allocators, set;
  std::optional<std::string> capacity;  ///< a size, or `unlimited`
  std::optional<std::int64_t> device;   ///< of a snapshot
  std::size_t steps = 0;                ///< how many steps to keep
};

inline constexpr std::size_t kMostReplayChoices = 64;

/// Throws InputError. Without allocators: PyTorch's.
[[nodiscard]] std::vector<ReplayChoice> replay_choices(std::span<const std::string> allocators,
                                                       std::span<const std::string> set);

/// What a trace is compared on where nothing else was asked for: the allocators, and the main
/// settings of `caching`.
[[nodiscard]] std::vector<ReplayChoice> usual_choices();

struct ComparedReplay {
  ReplayChoice choice;
  Replayed replayed;
};

struct ReplayReport {
  std::string name;  ///< of the source
  bool is_snapshot = false;
  Trace trace;
  Bytes capacity;
  ReplayChoice choice;  ///< the first that was asked for
  Replayed replayed;
  std::vector<ReplayStep> steps;  ///< of it: the first ones, as many as were asked for
  std::vector<ComparedReplay>
      comparison;  ///< all that were asked for; the usual ones where one was
};

/// Throws InputError.
[[nodiscard]] ReplayReport run_replay(const ReplayRequest& request);

/// Whether a choice serves the request that `refusal` is about.
[[nodiscard]] bool serves(const Replayed& replayed, const ReplayRefusal& refusal);

/// Writes a memory snapshot of the report's choice. Throws InputError, also for `ideal`, which has no
/// addresses.
void write_replay_snapshot(const ReplayReport& report, const std::filesystem::path& path);

}  // namespace plimsoll
