/// From the plan of one rank to that of all ranks of a mesh, which do the same with other samples or
/// other parts of the network.
///
/// Every step is there once for each rank that is played; the others do what these do (Plan::mirrors). Beside them run the
/// collectives, whose moves follow each other on the channels between the ranks' memories:
///
///   of operators  Where a step runs an operator that is a collective (workload/core/collective.hpp),
///                 its rounds begin when that step has ended on the member and on whom it sends to;
///                 what uses its results later waits for the last round.
///   of gradients  What the backwards of a rank have accumulated is reduced over the ranks that hold the
///                 same parameters, first over the context and the expert axis, then over the data
///                 axis (AllReduce in levels), in buckets in the order in which the last addition to each gradient is made. A
///                 bucket begins with the last addition to it, so that it overlaps with the rest of
///                 the backward; it is full once it holds `bucket` bytes, the first with
///                 `first_bucket`. Without overlap all are one, after the last backward. Where several
///                 groups each hold all state in parts (MeshAxis::replica), gradients are scattered
///                 within each, and then the ranks that hold the same part all-reduce it.
///   of parameters Where each rank updates its part, the parts are gathered in the same way, in
///                 buckets in the order of the updates.
///
/// The collectives between two memories start one after the other, in issue order, as those of one
/// communicator do.
///
/// Where state lives in other memories (workload/sharding/away_step.hpp), what the plan has of it in the
/// memory of a rank is where it lives instead, and each fetch and store of it is a move between the two
/// memories, which begins when its step has ended and the buffers have no other user. Updates that
/// another processor runs are on its stream; they begin when the rank's last step before them has ended and
/// all gradients are there.
#pragma once

#include "plan/build/ranked_plan.hpp"

#include <cstdint>

namespace plimsoll {

/// The plan of these ranks. Where they are not all of them, the precondition is that the replicas
/// (PlayedRanks) cannot be told apart. Claims and bounds are left out. Throws std::invalid_argument, in words,
/// for plans that update parameters on the way, that stand for replicas already, or that would have
/// too many steps. O(steps of the result).
[[nodiscard]] SpreadPlan spread(const Plan& plan, const Workload& workload,
                                const Platform& platform, const Topology& topology,
                                const Spreading& spreading, const PlayedRanks& ranks);

/// Steps of the plan of so many ranks, of which `once` is for one. O(steps of `once`).
[[nodiscard]] std::uint64_t steps_of_all(const Plan& once, std::uint32_t ranks);

}  // namespace plimsoll
