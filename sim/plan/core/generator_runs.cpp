#include "plan/core/generator_runs.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {

GeneratorNeed GeneratorRuns::next(LaneId lane, OperatorId op, std::uint32_t microbatch,
                                  bool is_alone) {
  const std::size_t run = microbatch * workload_.operators.size() + index(op);
  has_run_.resize(std::max(has_run_.size(), run + 1), false);
  streams_.resize(std::max<std::size_t>(streams_.size(), index(lane) + 1));
  const bool is_again = has_run_[run];
  has_run_[run] = true;
  Stream& stream = streams_[index(lane)];
  if (!is_again || !is_alone) stream.again.reset();
  if (!workload_[op].is_random) return GeneratorNeed::none;

  const Draw draw{op, microbatch};
  if (!is_again) {
    before_[draw] = stream.first;
    stream.first = draw;
    return GeneratorNeed::first;
  }
  const bool goes_on = stream.again && stream.again == before_[draw];
  if (is_alone) stream.again = draw;
  return goes_on ? GeneratorNeed::continued : GeneratorNeed::kept;
}

}  // namespace plimsoll
