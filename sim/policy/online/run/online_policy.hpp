/// A policy that decides while the program runs: the one interface of all of `online/`.
///
/// The program's operators are issued one after the other. Where one finds no room, the policy is
/// asked for steps that make some; what an operator reads and is not there is made again first. The
/// policy is told of everything that happens, in that order, and keeps what it wants to know. It
/// does not see what the program will do.
#pragma once

#include "policy/online/run/online_view.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// An operator that has run.
struct OperatorRun {
  std::uint32_t node = 0;
  std::int64_t began = 0;               ///< the clock before it
  bool is_first = false;                ///< its first run
  std::span<const std::uint32_t> made;  ///< storages that were not there before
};

/// A step that makes room: the release of a storage, which must be a candidate.
struct OnlineStep {
  std::uint32_t release = 0;
};

class OnlinePolicy {
 public:
  OnlinePolicy() = default;
  OnlinePolicy(const OnlinePolicy&) = delete;
  OnlinePolicy& operator=(const OnlinePolicy&) = delete;
  virtual ~OnlinePolicy() = default;

  /// Whether the storage, whose group can run again, may ever be a candidate.
  [[nodiscard]] virtual bool may_release(const StorageGraph& graph, std::uint32_t storage) const;
  /// `node` is to run next, and what it reads is wanted.
  virtual void on_request(const OnlineView& view, std::uint32_t node);
  virtual void on_operator(const OnlineView& view, const OperatorRun& run);
  /// A storage has been released, by the policy or because the program has no use for it any more.
  virtual void on_release(const OnlineView& view, std::uint32_t storage);

  /// An allocation of view.need() finds no room. The steps are taken, and the allocation is tried
  /// again; with no steps the run is out of memory.
  [[nodiscard]] virtual std::vector<OnlineStep> on_pressure(const OnlineView& view) = 0;

  /// How many candidates it has scored so far.
  [[nodiscard]] virtual std::int64_t score_evaluations() const { return 0; }
};

}  // namespace plimsoll
