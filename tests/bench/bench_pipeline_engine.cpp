// A forward pipeline on the engine's parts: event queue, serial servers, memories with accounting.
//
//   bench_pipeline_engine [stages [microbatches]]
//
// P stages, M microbatches; one execution (1 ms) a stage and microbatch, one transfer (8 MB at 16
// GB/s after 1 us, one at a time per link) a boundary and microbatch. An execution allocates its
// output as it starts and frees its input as it ends; a transfer allocates in the next stage and
// frees in its own. The makespan is held against the closed form (P - 1)(e + x) + M e, which holds
// for x <= e; exit status 1 where it differs.
#include "cpu_clock.hpp"
#include "engine/event_queue.hpp"
#include "engine/ring.hpp"
#include "engine/serial_server.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace plimsoll;

namespace {

constexpr Time kExecution{1'000'000'000};
constexpr Bytes kMessage{8'000'000};
const Time kTransfer = Time{1'000'000} + transfer_time(kMessage, ByteRate{16'000'000'000});

struct Stage {
  SerialServer processor;
  SerialServer link;  ///< to the next stage
  Allocator memory = Allocator::ideal(Bytes::unlimited());
  Ring<MemoryBlock> inputs, outputs, landing;
};

class Pipeline {
 public:
  Pipeline(std::uint32_t stages, std::uint32_t microbatches) : stages_(stages) {
    events_.reserve(2 * std::size_t{stages});
    for (std::uint32_t m = 0; m < microbatches; ++m) stages_.front().processor.enqueue(m);
  }

  /// The makespan.
  Time run() {
    execute(0);
    while (!events_.empty()) {
      const PendingEvent event = events_.pop();
      now_ = event.time;
      ++activities_;
      const std::uint32_t stage = event.payload >> 1;
      if ((event.payload & 1) == 0)
        end_execution(stage);
      else
        end_transfer(stage);
    }
    return now_;
  }

  [[nodiscard]] std::uint64_t activities() const { return activities_; }
  [[nodiscard]] Bytes peak() const {
    Bytes peak;
    for (const Stage& stage : stages_) peak = std::max(peak, stage.memory.peak().allocated);
    return peak;
  }

 private:
  void execute(std::uint32_t i) {
    Stage& stage = stages_[i];
    if (!stage.processor.ready()) return;
    stage.outputs.push(*stage.memory.allocate(kMessage));
    stage.processor.start(now_);
    events_.push(now_ + kExecution, i << 1);
  }
  void end_execution(std::uint32_t i) {
    Stage& stage = stages_[i];
    const std::uint32_t microbatch = stage.processor.finish(now_);
    if (i > 0) stage.memory.free(stage.inputs.pop());
    if (i + 1 < stages_.size()) {
      stage.link.enqueue(microbatch);
      transfer(i);
    } else {
      stage.memory.free(stage.outputs.pop());
    }
    execute(i);
  }
  void transfer(std::uint32_t i) {
    Stage& stage = stages_[i];
    if (!stage.link.ready()) return;
    stages_[i + 1].landing.push(*stages_[i + 1].memory.allocate(kMessage));
    stage.link.start(now_);
    events_.push(now_ + kTransfer, i << 1 | 1);
  }
  void end_transfer(std::uint32_t i) {
    Stage& stage = stages_[i];
    Stage& next = stages_[i + 1];
    next.processor.enqueue(stage.link.finish(now_));
    next.inputs.push(next.landing.pop());
    stage.memory.free(stage.outputs.pop());
    execute(i + 1);
    transfer(i);
  }

  std::vector<Stage> stages_;
  EventQueue events_;
  Time now_;
  std::uint64_t activities_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto stages = static_cast<std::uint32_t>(bench::argument(argc, argv, 1, 8));
  const auto microbatches = static_cast<std::uint32_t>(bench::argument(argc, argv, 2, 200'000));
  Pipeline pipeline(stages, microbatches);
  const double begin = bench::cpu_seconds();
  const Time makespan = pipeline.run();
  const double cpu = bench::cpu_seconds() - begin;
  const Time expected = (stages - 1) * (kExecution + kTransfer) + microbatches * kExecution;
  std::printf("stages %u microbatches %u makespan_ps %lld closed_form_ps %lld peak_bytes %lld\n",
              stages, microbatches, static_cast<long long>(makespan.count()),
              static_cast<long long>(expected.count()),
              static_cast<long long>(pipeline.peak().count()));
  std::printf("rate %.4g activities per CPU second\n",
              static_cast<double>(pipeline.activities()) / cpu);
  return makespan == expected ? 0 : 1;
}
