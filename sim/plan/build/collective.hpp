/// All-reduces: afterwards every member holds the sum of what all held. Made of reductions, which
/// are ordinary steps on the routes between the members' memories.
///
/// With n members, and gradients of B bytes together, in parts of ceil(B / n):
///
///   ring  2(n-1) rounds. In each, member i sends one part to member i+1: first n-1 rounds in which
///         parts are added on their way around, then n-1 in which the sums go around (Patarasuk and
///         Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC,
///         section 3). Where every link has latency a and bandwidth b, is fifo and full duplex, and
///         carries nothing else: 2(n-1) (a + B / (n b)).
///   tree  Recursive halving, then recursive doubling: log2(n) rounds in which members n/2, n/4, ..,
///         1 apart exchange halves of what they still have to add, and as many the other way around
///         (Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication
///         Operations in MPICH", IJHPCA, section 4.5). On such links: 2 log2(n) a + 2 (n-1)/n B/b.
///         n is a power of two.
///
///   in levels  Of n members in nodes of k neighbours: the first half of a ring (or tree) within each node
///         in k parts, one between the members of all nodes that hold the same part then, and the second
///         half within each node: 2(k-1) + 2(n/k-1) rounds of rings. On links a, b within nodes and a',
///         b' between nodes, each member with its own: 2(k-1)(a + B/(k b)) + 2(n/k-1)(a' + B/(n b')).
///         So of nodes of nodes.
///
/// In an all-to-all each member sends 1/n of its bytes to every other one, in n-1 rounds: in round r to
/// the r-th after it (of a tree: to i xor r): on such links (n-1)(a + B/(n b)). What arrives goes
/// through the member's own part to where its output is. Where members pass on what they have, each
/// sends all of it to the next one (or to the one before), in one round.
///
/// Member i begins a round when it has sent and received what the round before asks of it, and so
/// has whom it sends to, as far as received. A member begins when its gradients are made, not when
/// all are. Adding takes no time, and no memory beside the gradients.
#pragma once

#include "plan/build/plan_builder.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

enum class AllReduce : std::uint8_t { ring, tree };

/// What one member sends in one round.
struct CollectiveSend {
  std::uint32_t to = 0;    ///< a member
  std::uint32_t from = 0;  ///< the member that it receives from in this round
  Reduction part;
};

/// By round. Precondition: member < members, and for a tree the members are a power of two.
/// O(rounds).
[[nodiscard]] std::vector<CollectiveSend> sends_of(AllReduce algorithm, std::uint32_t members,
                                                   std::uint32_t member);

/// The same in levels, of which each has so many members or nodes, the innermost first. O(rounds).
[[nodiscard]] std::vector<CollectiveSend> sends_in_levels(AllReduce algorithm,
                                                          std::span<const std::uint32_t> levels,
                                                          std::uint32_t member);

/// Of the parts of a reduce-scatter of so many, the one that it leaves a member: of a ring that before the
/// one which it has sent last.
[[nodiscard]] std::uint32_t part_left(AllReduce algorithm, std::uint32_t members,
                                      std::uint32_t member);

/// Those of an all-to-all. O(members).
[[nodiscard]] std::vector<CollectiveSend> all_to_all_sends(AllReduce algorithm,
                                                           std::uint32_t members,
                                                           std::uint32_t member);

/// Those of a collective of any kind in levels, of which the first opens it. The first half of an
/// all-reduce leaves every member with the sum of a part, and is a reduce-scatter; the second half is
/// an all-gather. Each takes half the time. O(rounds).
[[nodiscard]] std::vector<CollectiveSend> sends_of(CollectiveKind kind, AllReduce algorithm,
                                                   std::span<const std::uint32_t> levels,
                                                   std::uint32_t member);

/// How many of its n parts a collective of n members reads and writes in the memory of each
/// (Reduction::opens). What is passed on is a message, and opens nothing.
[[nodiscard]] std::uint32_t parts_opened(CollectiveKind kind, std::uint32_t members);

/// By member: the steps that end an all-reduce there. After them it holds the sums and sends no
/// more of them.
using AllReduceEnds = std::vector<std::vector<StepId>>;

/// Adds the all-reduce of `gradients`, which every one of the memories `members` holds: 2(n-1) n or
/// 2 log2(n) n steps. Without gradients, or with one member, none, and no ends.
AllReduceEnds add_all_reduce(PlanBuilder& builder, AllReduce algorithm,
                             std::span<const MemoryId> members,
                             std::span<const TensorId> gradients);

/// The same where only the first member is played and the others are its mirrors: 2(n-1) or
/// 2 log2(n) steps, and its ends only. Precondition: the members' ways to each other are alike.
AllReduceEnds add_folded_all_reduce(PlanBuilder& builder, AllReduce algorithm,
                                    std::span<const MemoryId> members,
                                    std::span<const TensorId> gradients);

}  // namespace plimsoll
