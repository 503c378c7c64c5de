/// A chain and a machine made in code, and random good plans for the two.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "platform/core/platform.hpp"
#include "workload/given/chain_workload.hpp"

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace plimsoll::test {

/// Stages s1..sN of 1 ms each way, with outputs of 1 MiB and saved tensors of 3 MiB.
inline Workload small_chain(int stages, Bytes parameters = Bytes{},
                            std::optional<Optimizer> optimizer = std::nullopt) {
  ChainSpec chain;
  chain.name = "small";
  chain.input = Bytes{1 << 20};
  chain.optimizer = optimizer;
  for (int i = 1; i <= stages; ++i) {
    StageSpec stage;
    stage.name = "s" + std::to_string(i);
    stage.forward = Time{1'000'000'000};
    stage.backward = Time{1'000'000'000};
    stage.output = Bytes{1 << 20};
    stage.saved = Bytes{3 << 20};
    stage.parameters = parameters;
    chain.stages.push_back(stage);
  }
  return build(chain, WorkloadOptions{});
}

/// gpu with two streams on hbm (best_fit where asked for), a link to dram, and disk that nothing
/// joins.
inline Platform small_machine(AllocatorKind allocator = AllocatorKind::ideal) {
  Platform platform;
  platform.name = "small";
  for (const char* name : {"hbm", "dram", "disk"}) {
    Memory memory;
    memory.name = name;
    memory.allocator = allocator;
    platform.memories.push_back(memory);
  }
  Processor gpu;
  gpu.name = "gpu";
  gpu.streams = 2;
  platform.processors.push_back(gpu);
  Link pcie;
  pcie.name = "pcie";
  pcie.between = {MemoryId{0}, MemoryId{1}};
  platform.links.push_back(pcie);
  return platform;
}

inline constexpr MemoryId kHbm{0}, kDram{1}, kDisk{2};

inline OperatorId find_operator(const Workload& workload, const std::string& name) {
  for (std::uint32_t i = 0; i < workload.operators.size(); ++i)
    if (workload.operators[i].name == name) return OperatorId{i};
  throw std::invalid_argument(name);
}
inline TensorId find_tensor(const Workload& workload, const std::string& name) {
  for (std::uint32_t i = 0; i < workload.tensors.size(); ++i)
    if (workload.tensors[i].name == name) return TensorId{i};
  throw std::invalid_argument(name);
}

/// Plays a chain of small_chain() forth and back; each stage keeps, drops or offloads what it
/// saves, by chance.
class RandomPlan {
 public:
  RandomPlan(const Workload& workload, const Platform& platform, int stages, std::uint64_t seed)
      : workload_(workload),
        stages_(stages),
        random_(seed),
        builder_(workload, platform, "random") {
    gpu_ = builder_.stream(ProcessorId{0});
    out_ = builder_.channel(kHbm, kDram);
    in_ = builder_.channel(kDram, kHbm);
  }

  Plan make() {
    const std::uint32_t microbatches = 1 + chance(3);
    if (chance(2) == 0) builder_.order_grants(kHbm);
    for (std::uint32_t m = 0; m < microbatches; ++m) {
      for (int i = 1; i <= stages_; ++i) forward(i, m);
      for (int i = stages_; i >= 1; --i) {
        restore(value(i), i, m);
        restore(value(i - 1), i - 1, m);
        restore_saved(i, m);
        step(builder_.compute(gpu_, op(i, ".backward"), m));
      }
    }
    for (std::size_t op = workload_.optimizer_begin; op < workload_.operators.size(); ++op)
      step(builder_.compute(gpu_, OperatorId{static_cast<std::uint32_t>(op)}));
    return builder_.finish();
  }

 private:
  std::uint32_t chance(std::uint32_t of) { return static_cast<std::uint32_t>(random_() % of); }
  OperatorId op(int stage, const char* suffix) const {
    return find_operator(workload_, "s" + std::to_string(stage) + suffix);
  }
  TensorId tensor(int stage, const char* suffix) const {
    return find_tensor(workload_, "s" + std::to_string(stage) + suffix);
  }
  TensorId value(int stage) const {
    return stage == 0 ? find_tensor(workload_, "input") : tensor(stage, ".output");
  }

  /// Now and then a step waits for one before it.
  void step(StepId id) {
    if (previous_ && chance(4) == 0) builder_.after_end(id, *previous_);
    if (previous_ && chance(4) == 0) builder_.after_start(id, *previous_);
    previous_ = id;
  }

  void forward(int i, std::uint32_t m) {
    restore(value(i - 1), i - 1, m);
    if (chance(3) == 0) return step(builder_.compute(gpu_, op(i, ".forward"), m, Form::bare));
    step(builder_.compute(gpu_, op(i, ".forward"), m));
    if (chance(2) == 0) offload(i, m);
  }

  void offload(int i, std::uint32_t m) {
    constexpr SourceRelease kHow[] = {SourceRelease::keep, SourceRelease::whole,
                                      SourceRelease::progressive};
    step(builder_.copy(out_, tensor(i, ".saved"), m, kHow[chance(3)]));
  }

  /// Puts the saved tensor of stage i into hbm: it is there, comes back, or is made again.
  void restore_saved(int i, std::uint32_t m) {
    const TensorId saved = tensor(i, ".saved");
    if (builder_.holds(saved, m, kHbm)) return;
    if (builder_.holds(saved, m, kDram)) {
      step(builder_.copy(in_, saved, m, SourceRelease::keep));
    } else {
      restore(value(i - 1), i - 1, m);
      step(builder_.compute(gpu_, op(i, ".forward"), m));
    }
  }
  /// Puts the output of stage i, whose tensor is `value`, into hbm.
  void restore(TensorId value, int i, std::uint32_t m) {
    if (i > 0 && !builder_.holds(value, m, kHbm)) restore_saved(i, m);
  }

  const Workload& workload_;
  int stages_;
  std::mt19937_64 random_;
  PlanBuilder builder_;
  LaneId gpu_{}, out_{}, in_{};
  std::optional<StepId> previous_;
};

}  // namespace plimsoll::test
