/// What a plan of a pipeline runs, as the tasks of a schedule: the way back from a plan to orders,
/// whichever policy or file it comes from.
///
/// A slot is a longest run of chain stages that every microbatch runs on one device without
/// anything between them, forwards, backwards and weight halves alike. Where the slots are not as
/// many on every device, as at the turn of a V whose two chunks follow each other, those between
/// two slots of one other device are cut once more: such a cut changes nothing that is run.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"
#include "workload/chain/chain_view.hpp"

namespace plimsoll {

/// Devices are numbered as the plan's streams are. Throws InputError at `where` for what tasks of
/// one direction with a flush cannot say: recomputation, offload, a stage on several devices,
/// several versions of the parameters. O(steps log steps).
[[nodiscard]] Schedule tasks_of(const Plan& plan, const Workload& workload, const ChainView& chain,
                                const Location& where);

/// How many chain stages come before each of these slots, 0 first. Throws likewise.
[[nodiscard]] std::vector<std::size_t> cuts_of(const Plan& plan, const Workload& workload,
                                               const ChainView& chain, const Location& where);

}  // namespace plimsoll
