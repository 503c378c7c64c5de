/// A sequence of computations that changes, as it is seen from one of its places.
///
/// Runs of the nodes of a group that belong together are an instance: the first runs of all of
/// them, or those that make the values of the group again. What an instance makes are its copies,
/// and who reads one is told apart by whether it runs before the place, at it, or after it.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

class RunList {
 public:
  struct Instance {
    std::uint32_t group = 0;
    bool is_moved = false;   ///< it runs later than it did at first
    bool is_denied = false;  ///< it was tried in vain
  };
  struct Copy {
    std::uint32_t value = 0;
    std::uint32_t reads_before = 0;  ///< other instances that do
    bool is_read_here = false;
    std::uint32_t next_read = OperatorGraph::kNone;  ///< place of the first read after this one
    std::uint32_t last_read = 0;                     ///< place, its own where nobody reads it
  };

  /// Every node once, in the order of the graph. The arguments must outlive it.
  RunList(const OperatorGraph& graph, const RerunGroups& groups);

  /// What may be put back.
  struct Sequence {
    std::uint32_t place = 0;
    std::vector<std::uint32_t> nodes = {}, instance_of = {};  ///< by run
    std::vector<Instance> instances = {};
  };

  [[nodiscard]] const Sequence& sequence() const { return it_; }
  void put_back(Sequence sequence) { it_ = std::move(sequence); }
  [[nodiscard]] std::size_t size() const { return it_.nodes.size(); }
  [[nodiscard]] std::uint32_t place() const { return it_.place; }
  [[nodiscard]] const Instance& operator[](std::uint32_t instance) const {
    return it_.instances[instance];
  }
  void deny(std::uint32_t instance) { it_.instances[instance].is_denied = true; }

  /// Looks at the sequence from a place. O(runs + reads).
  void look_from(std::uint32_t place);
  /// All of whose runs are before the place, by their first run.
  [[nodiscard]] std::span<const std::uint32_t> done() const { return done_; }
  /// Of an instance, what it makes, and what it reads of others.
  [[nodiscard]] std::span<const std::uint32_t> made(std::uint32_t instance) const {
    return made_[instance];
  }
  [[nodiscard]] std::span<const std::uint32_t> read(std::uint32_t instance) const {
    return read_[instance];
  }
  [[nodiscard]] const Copy& copy(std::uint32_t number) const { return copies_[number]; }

  /// The same once more in front of the run at `before`, which comes after the place.
  void run_again(std::uint32_t instance, std::uint32_t before);
  /// In front of `before` instead. The place moves with its run.
  void move(std::uint32_t instance, std::uint32_t before);

 private:
  void add_runs(std::uint32_t group, std::uint32_t before, bool is_moved);
  void add_reads(std::uint32_t place, const std::vector<std::uint32_t>& latest);

  const OperatorGraph* graph_;
  const RerunGroups* groups_;
  Sequence it_;
  // As seen from the place:
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> done_;
  std::vector<std::vector<std::uint32_t>> made_, read_;  ///< copies, by instance
};

}  // namespace plimsoll
