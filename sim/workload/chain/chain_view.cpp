#include "workload/chain/chain_view.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plimsoll {
namespace {

/// Where a value of the forwards is made, written last and read last, as positions of forwards;
/// backwards read at that of their forward.
struct Span {
  std::uint32_t made = kNone;
  std::uint32_t written = kNone;
  std::uint32_t read = 0;
  bool is_read = false;
  bool is_read_by_backward = false;
};

/// Parts that read a value, from which on it is carried: a branch and an addition are two.
constexpr std::uint32_t kFewestReaders = 3;

/// Behind the last forward of a stage, and what crosses there beside its output.
struct StageEnd {
  std::uint32_t end = 0;
  std::vector<TensorId> carried = {};
};

/// Finds the ends of the stages: after operator k when exactly one value crosses from [0, k] to (k,
/// end) and k itself wrote it for the last time; where values are carried, also one and such a value.
class Cutter {
 public:
  Cutter(const Workload& workload, bool carries)
      : workload_(workload), carries_(carries), spans_(workload.tensors.size()) {
    for (std::uint32_t k = 0; k < workload.forwards; ++k) note(workload.operators[k], k);
    for (std::uint32_t b = workload.optimizer_begin; b-- > workload.forwards;)
      note_backward(workload.operators[b]);
    if (carries) join_gradients_of_inputs();
    crossing_ = count_crossing();
  }

  [[nodiscard]] std::vector<StageEnd> ends() const {
    std::vector<StageEnd> ends;
    for (std::uint32_t k = 0; k + 1 < workload_.forwards; ++k) {
      const TensorId output = crossing_[k] == 1 ? boundary(k) : kNoTensor;
      if (output == kNoTensor) continue;
      ends.push_back({k + 1});
      if (!carries_) continue;
      const std::vector<StageEnd> more = ends_that_carry(output, k);
      ends.insert(ends.end(), more.begin(), more.end());
    }
    if (workload_.forwards > 0) ends.push_back({workload_.forwards});
    return ends;
  }

  /// The value that `k` wrote last and that later forwards read, or kNoTensor.
  [[nodiscard]] TensorId boundary(std::uint32_t k) const {
    const Operator& op = workload_.operators[k];
    for (const TensorList slice : {op.bare, op.updates})
      for (const TensorId id : workload_.list(slice)) {
        const Span& span = spans_[index(id)];
        if (span.written == k && span.is_read && span.read > k) return id;
      }
    return kNoTensor;
  }

 private:
  void note(const Operator& op, std::uint32_t k) {
    for (const TensorId id : workload_.list(op.reads)) {
      spans_[index(id)].read = k;
      spans_[index(id)].is_read = true;
    }
    for (const TensorList slice : {op.kept, op.bare, op.updates})
      for (const TensorId id : workload_.list(slice)) {
        Span& span = spans_[index(id)];
        span.written = k;
        span.made = std::min(span.made, k);
      }
  }

  /// From the last one on: what has been read is read after this one. What its stage's forwards would
  /// make again must not have been changed since for others.
  void note_backward(const Operator& op) {
    const auto k = static_cast<std::uint32_t>(op.forward);
    for (const TensorId id : workload_.list(op.updates)) {
      Span& span = spans_[index(id)];
      if (span.written != kNone && span.is_read_by_backward)
        span.written = std::max(span.written, k);
    }
    for (const TensorId id : workload_.list(op.reads)) {
      Span& span = spans_[index(id)];
      if (span.written == kNone) continue;  // not of a forward
      if (k < span.made) uncut_.emplace_back(k, span.made);
      span.is_read_by_backward = true;
      if (k > span.read || !span.is_read) span.read = k;
      span.is_read = true;
    }
  }

  /// Ends of stages behind `k`, up to the last reader of what `k` leaves and of its copies, where
  /// those and one other value cross; none where it is not carried.
  [[nodiscard]] std::vector<StageEnd> ends_that_carry(TensorId value, std::uint32_t k) const {
    std::vector<StageEnd> ends;
    std::vector<TensorId> all{value};
    std::uint32_t readers = 0;
    bool is_read = false;
    for (std::uint32_t at = k + 1; !all.empty(); ++at) {
      is_read = is_read || reads_any(at, all);
      if (is_read && ends.empty()) return {};  // what follows comes from it
      add_copies(at, all);
      std::erase_if(all, [&](TensorId id) { return spans_[index(id)].read <= at; });
      const TensorId output = boundary(at);
      const bool ends_here = output != kNoTensor && !std::ranges::count(all, output) &&
                             crossing_[at] == std::ssize(all) + 1;
      if (!ends_here && !all.empty()) continue;
      if (std::exchange(is_read, false)) ++readers;
      if (!all.empty()) ends.push_back({at + 1, all});
    }
    return readers < kFewestReaders ? std::vector<StageEnd>() : ends;
  }

  [[nodiscard]] bool reads_any(std::uint32_t k, const std::vector<TensorId>& values) const {
    return std::ranges::any_of(workload_.list(workload_.operators[k].reads),
                               [&](TensorId read) { return std::ranges::count(values, read) > 0; });
  }

  /// What an operator makes that reads carried values alone (a cast, a quantization, a gather) goes
  /// with these to all that share it.
  void add_copies(std::uint32_t k, std::vector<TensorId>& values) const {
    const Operator& op = workload_.operators[k];
    const auto reads = workload_.list(op.reads);
    if (reads.empty() || !std::ranges::all_of(reads, [&](TensorId read) {
          return std::ranges::count(values, read) > 0;
        }))
      return;
    for (const TensorList slice : {op.kept, op.bare})
      for (const TensorId made : workload_.list(slice))
        if (std::ranges::count(values, made) == 0) values.push_back(made);
  }

  /// An input has one gradient, to which all add whose forwards read it.
  void join_gradients_of_inputs() {
    std::vector<std::uint32_t> last(workload_.tensors.size(), kNone);
    for (std::uint32_t b = workload_.forwards; b < workload_.optimizer_begin; ++b) {
      const auto k = static_cast<std::uint32_t>(workload_.operators[b].forward);
      for (const TensorId id : workload_.list(workload_.operators[b].kept)) {
        if (workload_[id].lifetime != Lifetime::stays) continue;
        if (last[index(id)] == kNone) last[index(id)] = k;
        uncut_.emplace_back(k, last[index(id)]);
      }
    }
  }

  /// Whether an input counts where it crosses: what devices of a pipeline are given of it need not be
  /// sent, if nothing changes it.
  [[nodiscard]] bool input_crosses(TensorId id) const {
    return workload_[id].lifetime == Lifetime::input &&
           !(carries_ && spans_[index(id)].written == kNone);
  }

  /// By operator k, the values made in [0, k] or there from the start that later forwards read.
  [[nodiscard]] std::vector<std::int64_t> count_crossing() const {
    std::vector<std::int64_t> change(workload_.forwards + std::size_t{1});
    std::vector<bool> seen(workload_.tensors.size());
    const auto count = [&](TensorId id, std::uint32_t from) {
      const Span& span = spans_[index(id)];
      if (seen[index(id)] || !span.is_read || span.read <= from) return;
      seen[index(id)] = true;
      ++change[from];
      --change[span.read];
    };
    for (std::uint32_t k = 0; k < workload_.forwards; ++k) {
      const Operator& op = workload_.operators[k];
      for (const TensorList slice : {op.kept, op.bare})
        for (const TensorId id : workload_.list(slice)) count(id, k);
      for (const TensorId id : workload_.list(op.reads))
        if (input_crosses(id)) count(id, 0);
    }
    for (const auto& [begin, end] : uncut_) {
      change[begin] += 2;
      change[end] -= 2;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  const Workload& workload_;
  const bool carries_;
  std::vector<Span> spans_;
  std::vector<std::int64_t> crossing_;  ///< by operator
  /// From an operator whose backward reads what a later one makes to that: no stage ends between.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> uncut_;
};

/// Joins what has no backward (a copy hands its gradient on) to the stage after it, at the end to
/// the one before.
std::vector<StageEnd> ends_with_backwards(const Workload& workload,
                                          const std::vector<StageEnd>& ends) {
  std::vector<std::uint32_t> backwards(workload.forwards + std::size_t{1});  // of operators < k
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b)
    ++backwards[index(workload.operators[b].forward) + std::size_t{1}];
  std::partial_sum(backwards.begin(), backwards.end(), backwards.begin());
  std::vector<StageEnd> kept;
  for (const StageEnd& it : ends) {
    const std::uint32_t begin = kept.empty() ? 0 : kept.back().end;
    const bool is_last = it.end == workload.forwards;
    if (backwards[it.end] > backwards[begin] || (is_last && kept.empty()))
      kept.push_back(it);
    else if (is_last)
      kept.back() = it;
  }
  return kept;
}

std::vector<StageEnd> stage_ends(const Workload& workload, const Cutter& cutter) {
  if (!workload.is_chain) return ends_with_backwards(workload, cutter.ends());
  std::vector<StageEnd> ends;
  for (std::uint32_t k = 0; k < workload.forwards; ++k) ends.push_back({k + 1});
  return ends;
}

/// Fills the forwards of each stage and its output.
void cut(ChainView& view, const Workload& workload, const Cutter& cutter,
         std::vector<std::uint32_t>& stage_of) {
  std::uint32_t begin = 0;
  for (const auto& [end, carried] : stage_ends(workload, cutter)) {
    ChainStage stage;
    stage.forward_begin = begin;
    stage.forward_end = end;
    if (end < workload.forwards) stage.output = cutter.boundary(end - 1);
    if (workload.is_chain)
      stage.output_bytes = workload[workload.list(workload.operators[begin].bare).front()].bytes;
    else if (stage.output != kNoTensor)
      stage.output_bytes = workload[stage.output].bytes;
    stage.carried = carried;
    for (const TensorId id : carried) stage.output_bytes += workload[id].bytes;
    for (; begin < end; ++begin) stage_of[begin] = static_cast<std::uint32_t>(view.stages.size());
    view.stages.push_back(stage);
  }
}

/// Sorts the backwards by stage, each stage's in execution order.
void collect_backwards(ChainView& view, const Workload& workload,
                       const std::vector<std::uint32_t>& stage_of) {
  std::vector<std::uint32_t> next(view.stages.size() + 1);
  const auto stage = [&](std::uint32_t op) {
    return stage_of[static_cast<std::size_t>(workload.operators[op].forward)];
  };
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b) ++next[stage(b) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t s = 0; s < view.stages.size(); ++s) {
    view.stages[s].backward_begin = next[s];
    view.stages[s].backward_end = next[s + 1];
  }
  view.backwards.resize(next.back());
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b)
    view.backwards[next[stage(b)]++] = OperatorId{b};
}

/// Of what a backward hands to another one.
bool is_delta(const Tensor& tensor) {
  return tensor.tensor_class == TensorClass::gradient && tensor.lifetime == Lifetime::step;
}

/// Where backwards first make a gradient and last read it or add to it, as stages.
struct GradientSpan {
  std::uint32_t made = kNone, used = kNone;
};

/// The gradients of step lifetime that a later stage's backward makes and this one reads or, where
/// values are carried, hands on; after the last stage the one that its own backward makes and nothing
/// reads.
void add_gradients(ChainView& view, const Workload& workload,
                   const std::vector<std::uint32_t>& stage_of) {
  std::vector<GradientSpan> spans(workload.tensors.size());
  std::vector<bool> is_read(workload.tensors.size());
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b) {
    const Operator& op = workload.operators[b];
    const std::uint32_t stage = stage_of[static_cast<std::size_t>(op.forward)];
    for (const TensorId id : workload.list(op.reads)) {
      if (!is_delta(workload[id])) continue;
      is_read[index(id)] = true;
      GradientSpan& span = spans[index(id)];
      if (span.made == kNone) continue;
      span.used = stage;
      if (span.made > stage) view.stages[stage].gradients.push_back(id);
    }
    for (const TensorId id : workload.list(op.kept)) {
      if (!is_delta(workload[id])) continue;
      GradientSpan& span = spans[index(id)];
      if (span.made == kNone) span.made = stage;
      span.used = stage;
    }
  }
  for (std::uint32_t t = 0; t < spans.size(); ++t)
    for (std::uint32_t s = spans[t].used; s < spans[t].made; ++s)
      if (!view.stages[s].carried.empty()) view.stages[s].gradients.push_back(TensorId{t});
  for (ChainStage& stage : view.stages) {
    std::ranges::sort(stage.gradients);
    stage.gradients.erase(std::unique(stage.gradients.begin(), stage.gradients.end()),
                          stage.gradients.end());
    for (const TensorId id : stage.gradients) stage.gradient_bytes += workload[id].bytes;
  }
  for (std::size_t t = 0; t < spans.size(); ++t)
    if (spans[t].made != kNone && spans[t].made + std::size_t{1} == view.stages.size() &&
        !is_read[t])
      view.stages.back().gradient_bytes += workload.tensors[t].bytes;
}

/// The storages of each stage that backwards read, and its parameters.
void add_storages(ChainView& view, const Workload& workload) {
  std::vector<bool> needed(workload.tensors.size());
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b)
    for (const TensorId id : workload.list(workload.operators[b].reads)) {
      needed[index(id)] = true;
      if (workload[id].inside != kNoTensor) needed[index(workload[id].inside)] = true;
    }
  std::vector<std::uint32_t> parameter_of(workload.tensors.size(), kNone);
  for (std::uint32_t s = 0; s < view.stages.size(); ++s) {
    ChainStage& stage = view.stages[s];
    view.saved_begin.push_back(static_cast<std::uint32_t>(view.saved_tensors.size()));
    for (std::uint32_t f = stage.forward_begin; f < stage.forward_end; ++f) {
      for (const TensorId id : workload.list(workload.operators[f].kept)) {
        if (!needed[index(id)]) continue;
        view.saved_tensors.push_back(id);
        stage.saved_bytes += workload[id].bytes;
      }
      for (const TensorId id : workload.list(workload.operators[f].reads)) {
        if (workload[id].tensor_class != TensorClass::parameter || parameter_of[index(id)] == s)
          continue;
        parameter_of[index(id)] = s;
        stage.parameter_bytes += workload[id].bytes;
      }
    }
  }
  view.saved_begin.push_back(static_cast<std::uint32_t>(view.saved_tensors.size()));
}

ChainView view_of(const Workload& workload, bool carries) {
  ChainView view;
  std::vector<std::uint32_t> stage_of(workload.forwards);
  cut(view, workload, Cutter(workload, carries), stage_of);
  collect_backwards(view, workload, stage_of);
  add_gradients(view, workload, stage_of);
  add_storages(view, workload);
  view.is_of_pipeline = carries;
  return view;
}

}  // namespace

std::span<const OperatorId> ChainView::backward(std::size_t stage) const {
  return std::span(backwards).subspan(stages[stage].backward_begin,
                                      stages[stage].backward_end - stages[stage].backward_begin);
}

std::span<const TensorId> ChainView::saved(std::size_t stage) const {
  return std::span(saved_tensors)
      .subspan(saved_begin[stage], saved_begin[stage + 1] - saved_begin[stage]);
}

ChainView chain_view(const Workload& workload) {
  return view_of(workload, false);
}

ChainView pipeline_view(const Workload& workload) {
  return view_of(workload, true);
}

}  // namespace plimsoll
