#include "policy/offload/model/fluid_bound.hpp"

#include "base/dense_id.hpp"
#include "policy/offload/model/fluid_amount.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// The least idle time for every number of bytes away: a flat interval [low_, high_].
class Fluid {
 public:
  Fluid(ByteRate out, ByteRate in) : out_(out), in_(in) {}

  void run(Time duration) {
    low_ = std::max(-kFluidFar, low_ - fluid_moved(duration, in_));
    high_ = std::min(kFluidFar, high_ + fluid_moved(duration, out_));
    busy_ += duration;
  }

  /// The bytes away are from `least` to `most`. Returns false where nothing lies between.
  bool require(Bytes least, Bytes most) {
    if (least > most) return false;
    const FluidAmount from = fluid(least), to = fluid(most);
    if (high_ < from) {
      idle_out_ += from - high_;
      low_ = high_ = from;
    } else if (low_ > to) {
      idle_in_ += low_ - to;
      low_ = high_ = to;
    } else {
      low_ = std::max(low_, from);
      high_ = std::min(high_, to);
    }
    return true;
  }

  /// Rounded up once.
  [[nodiscard]] Time time() const {
    const auto rate = [](ByteRate r) { return static_cast<FluidAmount>(r.count()); };
    const FluidAmount out = out_.is_unlimited() ? 0 : idle_out_;
    const FluidAmount in = in_.is_unlimited() ? 0 : idle_in_;
    const FluidAmount rest = out % rate(out_) * rate(in_) + in % rate(in_) * rate(out_);
    const FluidAmount both = rate(out_) * rate(in_);
    const FluidAmount idle = out / rate(out_) + in / rate(in_) + rest / both + (rest % both > 0);
    return busy_ + Time{static_cast<std::int64_t>(idle)};
  }

 private:
  ByteRate out_, in_;
  FluidAmount low_ = 0, high_ = 0;
  FluidAmount idle_out_ = 0, idle_in_ = 0;
  Time busy_;
};

Bytes excess(Bytes need, Bytes budget) {
  return budget.is_unlimited() || need <= budget ? Bytes{} : need - budget;
}

bool has_room_for_optimizer(const OffloadModel& model) {
  Bytes need = model.resident + model.input_gradient + model.optimizer_workspace;
  for (const OffloadStage& stage : model.stages) need += stage.lasting;
  return excess(need, model.budget) == Bytes{};
}

/// By stage: the bytes that it can move; and sums over the stages before.
struct Movable {
  std::vector<Bytes> before{Bytes{}};
  explicit Movable(const OffloadModel& model) {
    for (std::size_t s = 0; s < model.stages.size(); ++s)
      before.push_back(before.back() + (s < model.candidates ? model.stages[s].moved : Bytes{}));
  }
  /// Of all stages at least two before `s`: neither it nor its input.
  [[nodiscard]] Bytes behind(std::size_t s) const { return s == 0 ? Bytes{} : before[s - 1]; }
};

bool forwards_of_chain(const OffloadModel& model, const Movable& movable, Fluid& fluid) {
  Bytes saved;
  for (std::size_t s = 0; s < model.stages.size(); ++s) {
    saved += model.stages[s].moved;
    const Bytes least = excess(saved + model.beside_forward(s), model.budget);
    if (least > movable.behind(s) || !fluid.require(least, movable.before[s])) return false;
    fluid.run(model.stages[s].forward);
    fluid.require(least, movable.before[s]);
  }
  return true;
}

bool backwards_of_chain(const OffloadModel& model, const Movable& movable, Fluid& fluid) {
  Bytes saved, lasting;
  for (const OffloadStage& stage : model.stages) saved += stage.moved;
  for (std::size_t s = model.stages.size(); s-- > 0;) {
    const OffloadStage& stage = model.stages[s];
    const Bytes before = s > 0 ? model.stages[s - 1].gradient : model.input_gradient;
    lasting += stage.lasting;
    const Bytes need =
        model.resident + saved + stage.gradient + before + stage.backward_workspace + lasting;
    const Bytes least = excess(need, model.budget);
    if (!fluid.require(least, movable.behind(s))) return false;
    fluid.run(stage.backward);
    fluid.require(least, movable.behind(s));
    saved -= stage.moved;
  }
  return true;
}

/// The same for the operators of a network, relaxed to what is there whatever they free early.
class NetworkBound {
 public:
  NetworkBound(const Problem& problem, const OffloadModel& model)
      : problem_(problem), model_(model), last_read_(model.stages.size() + 1) {
    find_last_reads();
  }

  std::optional<Time> run() {
    Fluid fluid(model_.out_rate, model_.in_rate);
    Bytes saved, lasting;
    const auto require = [&](Bytes beside) {
      return fluid.require(excess(model_.resident + saved + lasting + beside, model_.budget),
                           saved);
    };
    for (const OffloadStage& stage : model_.stages) {
      fluid.run(stage.forward);
      saved += stage.moved;
      if (!require(stage.passing)) return std::nullopt;
    }
    for (std::size_t s = model_.stages.size(); s-- > 0;) {
      fluid.run(model_.stages[s].backward);
      saved -= last_read_[s];
      lasting += model_.stages[s].lasting;
      const Bytes gradient = s > 0 ? model_.stages[s - 1].gradient : model_.input_gradient;
      if (!require(gradient)) return std::nullopt;
    }
    if (!has_room_for_optimizer(model_)) return std::nullopt;
    return fluid.time() + model_.optimizer;
  }

 private:
  /// The bytes of saved tensors whose last reader is in the backward of each stage.
  void find_last_reads() {
    const Workload& workload = problem_.workload;
    std::vector<std::uint32_t> last(workload.tensors.size(), kNone);
    for (std::size_t s = model_.stages.size(); s-- > 0;)
      for (const OperatorId op : problem_.chain.backward(s))
        for (const TensorId read : workload.list(workload[op].reads)) {
          last[index(read)] = static_cast<std::uint32_t>(s);
          if (const TensorId whole = workload[read].inside; whole != kNoTensor)
            last[index(whole)] = static_cast<std::uint32_t>(s);
        }
    for (std::size_t s = 0; s < model_.stages.size(); ++s)
      for (const TensorId id : problem_.chain.saved(s)) {
        const std::size_t at =
            last[index(id)] == kNone ? model_.stages.size() - 1 : last[index(id)];
        last_read_[at] += workload[id].bytes;
      }
  }

  const Problem& problem_;
  const OffloadModel& model_;
  std::vector<Bytes> last_read_;  ///< by stage
};

}  // namespace

std::optional<Time> fluid_bound(const OffloadModel& model) {
  const Movable movable(model);
  Fluid fluid(model.out_rate, model.in_rate);
  if (!forwards_of_chain(model, movable, fluid) || !backwards_of_chain(model, movable, fluid) ||
      !has_room_for_optimizer(model))
    return std::nullopt;
  return fluid.time() + model.optimizer;
}

std::optional<Time> offload_lower_bound(const Problem& problem, const OffloadMemories& memories,
                                        Bytes budget) {
  const OffloadModel model = offload_model(problem, memories, budget, SourceRelease::whole);
  return has_simple_stages(problem) ? fluid_bound(model) : NetworkBound(problem, model).run();
}

Planned with_offload_bound(Planned planned, const Problem& problem, const OffloadMemories& memories,
                           Bytes budget) {
  if (auto* plan = std::get_if<Plan>(&planned))
    plan->bounds.makespan = offload_lower_bound(problem, memories, budget);
  return planned;
}

}  // namespace plimsoll
