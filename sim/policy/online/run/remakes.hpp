/// What of a program can be made again under a policy, and what an operator makes when it runs again.
///
/// Where masks are kept, what random numbers decided is never released: a dropout that runs again makes
/// its output from its input and its mask, in the form `bare`. Else it draws the same numbers again, as
/// from a generator whose state is restored.
#pragma once

#include "policy/online/run/online_policy.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// What becomes of what random numbers decided (StorageGraph::Storage::is_drawn).
enum class Masks : std::uint8_t { remake, keep };

class Remakes {
 public:
  /// `graph` must outlive it. O(storages + makes).
  Remakes(const StorageGraph& graph, const OnlinePolicy& policy, Masks masks);

  /// Whether it may be released, and made again by its group.
  [[nodiscard]] bool can_be_remade(std::uint32_t storage) const { return can_be_remade_[storage]; }
  /// Whether reruns of what makes it read it and leave it: it is there as long as they may come.
  [[nodiscard]] bool is_read_again(std::uint32_t storage) const { return is_read_again_[storage]; }

  /// In which form a node runs again, and which storages it makes then.
  [[nodiscard]] Form form(std::uint32_t node) const {
    return made_again_[node].empty() ? Form::keep : Form::bare;
  }
  [[nodiscard]] std::span<const std::uint32_t> made_again(std::uint32_t node) const {
    return made_again_[node].empty() ? graph_.nodes[node].makes : made_again_[node];
  }

  /// Calls `visit` with all storages that must be there for this one to be made again.
  template <class Visit>
  void for_each_source(std::uint32_t storage, const Visit& visit) const {
    for (const std::uint32_t parent : graph_.parents(storage)) visit(parent);
    for (const std::uint32_t sibling : graph_.siblings(storage))
      if (is_read_again_[sibling]) visit(sibling);
  }

 private:
  const StorageGraph& graph_;
  std::vector<bool> can_be_remade_, is_read_again_;     ///< by storage
  std::vector<std::vector<std::uint32_t>> made_again_;  ///< by node; empty: all that it makes
};

}  // namespace plimsoll
