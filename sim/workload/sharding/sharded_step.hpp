/// A training step as one of several ranks runs it that hold its state in parts: ZeRO (S. Rajbhandari,
/// J. Rasley, O. Ruwase, Y. He, "ZeRO: Memory optimizations toward training trillion parameter
/// models", SC 2020, section 5) and PyTorch's FSDP (Y. Zhao et al., "PyTorch FSDP: Experiences on
/// scaling fully sharded data parallel", VLDB 2023, section 3). With n ranks a rank holds
///
///   stage 1  1/n of the optimizer's state, and updates that part
///   stage 2  and 1/n of the gradients: those of a unit are whole from the backwards that make them
///            until a reduce-scatter has left the rank's part
///   stage 3  and 1/n of the parameters: those of a unit are gathered before its first forward and
///            again before its first backward, and go after the last that reads them; without
///            `reshards` they stay from the forward until the last backward that reads them
///
/// Every tensor is divided by itself, into parts rounded up to whole bytes. With parameters of 2
/// bytes, gradients of 4 and 12 bytes of state, of Psi parameters in all that is (6 + 12/n) Psi,
/// (2 + 16/n) Psi and 18/n Psi bytes, beside the units that are whole. With `from_master` a rank of
/// stage 3 has no part of 2 bytes of its own, and 16/n Psi bytes: a gather casts its part of the
/// master copy (what it casts is in the gathered whole). The cast takes no time. What is frozen has no
/// master copy, and the rank keeps its part of it.
///
/// Parameters of experts, of which each rank of an expert axis has its own, are divided among the fewer
/// ranks that hold the same ones, and are in units of their own.
///
/// Muon's directions (workload/step/optimizer_step.hpp) are made of the rank's part of gradient and
/// moment, and then gathered: every rank makes the whole matrix orthogonal, and updates its part with
/// its own of that (J. Liu and others, arXiv 2502.16982, algorithm 1).
///
/// Units, and when they are gathered and scattered: unit_step.hpp.
///
/// For a pipeline, a unit is a stage of the chain view (workload/chain/chain_view.hpp): the pipeline is
/// cut between those, and so each unit is on one device. A parameter that several stages use, such as
/// a tied embedding, is gathered for each, and each adds to the part of its gradient. Nothing is
/// gathered ahead: the plan moves gathers (plan/build/gathers_ahead.hpp).
///
/// Of stages 1 and 2 the plan gathers the updated parameters (plan/build/spread_plan.hpp).
#pragma once

#include "workload/core/workload.hpp"

#include <cstdint>

namespace plimsoll {

struct StateSharding {
  std::int64_t stage = 0;
  std::int64_t ranks = 1;
  std::int64_t prefetch = 1;          ///< stage 3
  bool overlap = true;                ///< stages 2 and 3
  bool by_chain_stage = false;        ///< then without prefetch, and with overlap
  std::int64_t ranks_of_experts = 1;  ///< that hold the same experts
  bool from_master = false;           ///< stage 3: parameters are cast from master copies
  bool reshards = true;               ///< stage 3: parameters go after the forward
};

/// Precondition: `step` is that of a network (build_step()), and keeps no gradients between
/// microbatches. O(operators + reads).
[[nodiscard]] Workload sharded_step(const Workload& step, const StateSharding& sharding);

}  // namespace plimsoll
