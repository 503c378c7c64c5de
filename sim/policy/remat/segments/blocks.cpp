#include "base/dense_id.hpp"
#include "plan/build/plan_builder.hpp"
#include "policy/claims/claims.hpp"
#include "policy/interface/entry.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/segments/named_blocks.hpp"
#include "workload/core/operator_traits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct BlocksParameters : SingleProcessorParameters {
  std::vector<BlockNames> blocks;
};

/// Which forward makes each value, and which last makes it or changes it in place.
struct Makers {
  explicit Makers(const Workload& workload)
      : made(workload.tensors.size(), kNone), changed(workload.tensors.size(), kNone) {
    for (std::uint32_t f = 0; f < workload.forwards; ++f) {
      const Operator& op = workload.operators[f];
      for (const TensorList slice : {op.kept, op.bare})
        for (const TensorId id : workload.list(slice)) made[index(id)] = changed[index(id)] = f;
      for (const TensorId id : workload.list(op.updates)) changed[index(id)] = f;
    }
  }

  std::vector<std::uint32_t> made, changed;  ///< by tensor; kNone: by no forward
};

/// What of each block runs again: what its backwards read of the block, and what is read to make
/// that. A block's input that the block changes in place is there as it was changed. Parameters are
/// gathered again for it, wherever that was done first.
class BlockRuns {
 public:
  BlockRuns(const Workload& workload, std::span<const ForwardRange> blocks)
      : workload_(workload),
        makers_(workload),
        block_of_(workload.forwards, kNone),
        again_(workload.forwards, false),
        keeps_(workload.forwards, false),
        is_needed_(workload.tensors.size(), false),
        is_read_by_backwards_(workload.tensors.size(), false) {
    for (std::uint32_t op = workload.forwards; op < workload.optimizer_begin; ++op)
      for (const TensorId id : workload.list(workload.operators[op].reads))
        is_read_by_backwards_[index(id)] = true;
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
      std::fill(block_of_.begin() + blocks[b].begin, block_of_.begin() + blocks[b].end, b);
    for (std::uint32_t op = workload.forwards; op < workload.optimizer_begin; ++op)
      note_backward(workload.operators[op], block_of_backward(op));
    for (std::uint32_t f = workload.forwards; f-- > 0;)
      if (block_of_[f] != kNone && !gathers_for_forward(workload.operators[f]) && makes_needed(f)) {
        again_[f] = true;
        need_reads(workload.operators[f], block_of_[f]);
      }
  }

  [[nodiscard]] bool again(std::uint32_t forward) const { return again_[forward]; }
  [[nodiscard]] bool any() const { return std::ranges::find(again_, true) != again_.end(); }
  /// Of a block, and nothing that only its kept form makes is read by backwards of others.
  [[nodiscard]] bool is_bare(std::uint32_t forward) const {
    return block_of_[forward] != kNone && !keeps_[forward];
  }

  /// The gathers of what runs again of the block reads, each once, in the order in which they are read;
  /// not of what is still there, for backwards.
  [[nodiscard]] std::vector<std::uint32_t> gathers_for(const ForwardRange& block) const {
    std::vector<std::uint32_t> gathers;
    for (std::uint32_t f = block.begin; f < block.end; ++f) {
      if (!again_[f]) continue;
      for (const TensorId value : workload_.list(workload_.operators[f].reads)) {
        const std::uint32_t made = makers_.made[index(value)];
        if (made != kNone && gathers_for_forward(workload_.operators[made]) && !stays(made) &&
            std::ranges::find(gathers, made) == gathers.end())
          gathers.push_back(made);
      }
    }
    return gathers;
  }

  /// The block whose backward the operator belongs to, or kNone.
  [[nodiscard]] std::uint32_t block_of_backward(std::uint32_t op) const {
    if (op < workload_.forwards || op >= workload_.optimizer_begin) return kNone;
    const OperatorId forward = workload_.operators[op].forward;
    return forward == kNoOperator ? kNone : block_of_[index(forward)];
  }

  /// Whether a backward reads more than gradients.
  [[nodiscard]] bool reads_kept(std::uint32_t backward) const {
    return std::ranges::any_of(
        workload_.list(workload_.operators[backward].reads), [&](TensorId value) {
          const Lifetime lifetime = workload_[value].lifetime;
          return makers_.made[index(value)] != kNone || lifetime == Lifetime::resident ||
                 lifetime == Lifetime::input;
        });
  }

  /// Of a value that this forward of a block reads.
  [[nodiscard]] bool is_from_before(TensorId value, std::uint32_t forward) const {
    return !is_of(value, block_of_[forward]);
  }

  /// A forward that would not make the same again: it reads a value from before its block that it
  /// or a later forward changes in place.
  [[nodiscard]] std::optional<std::uint32_t> spoiled(const ForwardRange& block) const {
    for (std::uint32_t f = block.begin; f < block.end; ++f)
      for (const TensorId value : workload_.list(workload_.operators[f].reads)) {
        const std::uint32_t changed = makers_.changed[index(value)];
        if (again_[f] && is_from_before(value, f) && changed != kNone && changed >= f &&
            workload_[value].lifetime != Lifetime::resident)
          return f;
      }
    return std::nullopt;
  }

 private:
  /// Whether a backward reads what this gather brings.
  [[nodiscard]] bool stays(std::uint32_t gather) const {
    return std::ranges::any_of(
        workload_.list(workload_.operators[gather].kept),
        [&](TensorId brought) { return is_read_by_backwards_[index(brought)]; });
  }

  [[nodiscard]] bool is_of(TensorId value, std::uint32_t block) const {
    const std::uint32_t made = makers_.made[index(value)];
    return made != kNone && block_of_[made] == block;
  }

  /// What it reads of its own block is made again for it; of other blocks it reads what they keep: a
  /// copy in fp8, say, that layers of several blocks share.
  void note_backward(const Operator& backward, std::uint32_t block) {
    if (block != kNone) need_reads(backward, block);
    for (const TensorId value : workload_.list(backward.reads))
      if (const std::uint32_t made = makers_.made[index(value)];
          made != kNone && block_of_[made] != block && !makes_bare(made, value))
        keeps_[made] = true;
  }

  [[nodiscard]] bool makes_bare(std::uint32_t forward, TensorId value) const {
    const auto bare = workload_.list(workload_.operators[forward].bare);
    return std::ranges::find(bare, value) != bare.end();
  }

  void need_reads(const Operator& reader, std::uint32_t block) {
    for (const TensorId value : workload_.list(reader.reads))
      if (is_of(value, block)) is_needed_[index(value)] = true;
  }

  [[nodiscard]] bool makes_needed(std::uint32_t forward) const {
    const Operator& op = workload_.operators[forward];
    for (const TensorList slice : {op.kept, op.bare, op.updates})
      for (const TensorId value : workload_.list(slice))
        if (is_needed_[index(value)] && is_of(value, block_of_[forward])) return true;
    return false;
  }

  const Workload& workload_;
  const Makers makers_;
  std::vector<std::uint32_t> block_of_;     ///< by forward
  std::vector<bool> again_;                 ///< by forward
  std::vector<bool> keeps_;                 ///< by forward: for backwards that are not of its block
  std::vector<bool> is_needed_;             ///< by tensor: to run its block's backwards
  std::vector<bool> is_read_by_backwards_;  ///< by tensor
};

class BlocksPlayer {
 public:
  BlocksPlayer(const Problem& problem, ProcessorId processor, std::span<const ForwardRange> blocks,
               const BlockRuns& runs, const std::string& policy)
      : problem_(problem),
        workload_(problem.workload),
        memory_(problem.platform[processor].memory),
        blocks_(blocks),
        runs_(runs),
        builder_(problem.workload, problem.platform, policy),
        stream_(builder_.stream(processor)),
        last_backward_(blocks.size(), kNone) {
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op)
      if (const std::uint32_t block = runs_.block_of_backward(op);
          block != kNone && runs_.reads_kept(op))
        last_backward_[block] = op;
  }

  Plan run() {
    std::vector<bool> is_done(blocks_.size(), false);
    for (std::uint32_t op = 0; op < workload_.operators.size(); ++op) {
      const std::uint32_t block = runs_.block_of_backward(op);
      if (block != kNone && !is_done[block] && !brings_parameters(workload_.operators[op])) {
        again(blocks_[block]);
        is_done[block] = true;
      }
      const bool is_bare = op < workload_.forwards && runs_.is_bare(op);
      const StepId step =
          builder_.compute(stream_, OperatorId{op}, 0, is_bare ? Form::bare : Form::keep);
      if (block != kNone && op == last_backward_[block]) hold_inputs(blocks_[block], step);
    }
    Plan plan = builder_.finish();
    plan.claims = claims_of(plan, problem_);
    return plan;
  }

 private:
  void again(const ForwardRange& block) {
    for (const std::uint32_t gather : runs_.gathers_for(block))
      if (const OperatorId op{gather}; !builder_.holds_for_backward(op, 0, memory_))
        builder_.compute(stream_, op);
    for (std::uint32_t f = block.begin; f < block.end; ++f)
      if (runs_.again(f)) builder_.compute(stream_, OperatorId{f});
  }

  /// What went into a block stays until the last of its backwards that reads anything kept, whether
  /// that needs it or not: it is an argument of the function that would run again.
  void hold_inputs(const ForwardRange& block, StepId until) {
    for (std::uint32_t f = block.begin; f < block.end; ++f)
      for (const TensorId value : workload_.list(workload_.operators[f].reads))
        if (workload_[value].lifetime == Lifetime::step && runs_.is_from_before(value, f) &&
            workload_[value].tensor_class != TensorClass::parameter &&
            builder_.holds(value, 0, memory_))
          builder_.hold_until(value, 0, memory_, until);
  }

  const Problem& problem_;
  const Workload& workload_;
  const MemoryId memory_;
  std::span<const ForwardRange> blocks_;
  const BlockRuns& runs_;
  PlanBuilder builder_;
  const LaneId stream_;
  std::vector<std::uint32_t> last_backward_;  ///< by block, that reads anything kept; or kNone
};

Planned plan_blocks(const Problem& problem, const BlocksParameters& parameters) {
  const Workload& workload = problem.workload;
  std::vector<ForwardRange> blocks = parameters.blocks.empty()
                                         ? outermost_blocks(workload)
                                         : named_blocks(workload, parameters.blocks, problem.work);
  if (parameters.blocks.empty()) {
    const BlockRuns all(workload, blocks);
    std::erase_if(blocks, [&](const ForwardRange& it) { return all.spoiled(it).has_value(); });
  }
  const BlockRuns runs(workload, blocks);
  for (const ForwardRange& it : blocks)
    if (const auto reader = runs.spoiled(it))
      refuse(it.where,
             fmt::format(
                 "block `{}` cannot run again: `{}` reads what is from before the block and is "
                 "changed in place afterwards",
                 it.name, workload.operators[*reader].name),
             "let the block begin earlier, or end later");
  if (!parameters.blocks.empty() && !runs.any())
    refuse(parameters.blocks.front().from.where,
           "nothing of these blocks would run again: no backward in them reads what they "
           "make; expected blocks of several layers, which are trained");
  return BlocksPlayer(problem, processor_for(problem, parameters), blocks, runs, parameters.name)
      .run();
}

}  // namespace

PolicyInfo remat_blocks_policy() {
  auto record = single_processor_record<BlocksParameters>("remat/blocks");
  record.optional("blocks", &BlocksParameters::blocks, list_of(block_names_format(), 1, 10'000),
                  "what runs again: names of blocks and layers, `*` for any characters, or `{from, "
                  "to}`; default: the outermost blocks, without those that cannot");
  return make_policy<BlocksParameters>(
      {.name = "remat/blocks",
       .summary =
           "Recomputes the blocks that you name before their backward, and keeps their inputs.",
       .paper =
           "as people checkpoint by hand: torch.utils.checkpoint; Korthikanti, Casper, Lym, "
           "McAfee, "
           "Andersch, Shoeybi, Catanzaro 2022, \"Reducing Activation Recomputation in Large "
           "Transformer Models\", arXiv:2205.05198: every layer (full), or the core of attention "
           "alone (selective)",
       .assumes = "any network; blocks that do not overlap and change nothing in place that was "
                  "made before them",
       .guarantees = "one more run of the forwards of a block whose results its backwards read, so "
                     "not of its last addition or activation; no budget",
       .complexity = "O(operators + reads)"},
      record, plan_blocks);
}

}  // namespace plimsoll
