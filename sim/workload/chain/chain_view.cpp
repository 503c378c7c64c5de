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

/// Finds the ends of the stages: after operator k when exactly one value crosses from [0, k] to (k,
/// end) and k itself wrote it for the last time.
class Cutter {
 public:
  explicit Cutter(const Workload& workload) : workload_(workload), spans_(workload.tensors.size()) {
    for (std::uint32_t k = 0; k < workload.forwards; ++k) note(workload.operators[k], k);
    for (std::uint32_t b = workload.optimizer_begin; b-- > workload.forwards;)
      note_backward(workload.operators[b]);
  }

  [[nodiscard]] std::vector<std::uint32_t> ends() const {
    const std::vector<std::int64_t> crossing = count_crossing();
    std::vector<std::uint32_t> ends;
    for (std::uint32_t k = 0; k + 1 < workload_.forwards; ++k)
      if (crossing[k] == 1 && boundary(k) != kNoTensor) ends.push_back(k + 1);
    if (workload_.forwards > 0) ends.push_back(workload_.forwards);
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
        if (workload_[id].lifetime == Lifetime::input) count(id, 0);
    }
    for (const auto& [begin, end] : uncut_) {
      change[begin] += 2;
      change[end] -= 2;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  const Workload& workload_;
  std::vector<Span> spans_;
  /// From an operator whose backward reads what a later one makes to that: no stage ends between.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> uncut_;
};

/// Joins what has no backward (a copy hands its gradient on) to the stage after it, at the end to
/// the one before.
std::vector<std::uint32_t> ends_with_backwards(const Workload& workload,
                                               const std::vector<std::uint32_t>& ends) {
  std::vector<std::uint32_t> backwards(workload.forwards + std::size_t{1});  // of operators < k
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b)
    ++backwards[index(workload.operators[b].forward) + std::size_t{1}];
  std::partial_sum(backwards.begin(), backwards.end(), backwards.begin());
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t end : ends) {
    const std::uint32_t begin = kept.empty() ? 0 : kept.back();
    if (backwards[end] > backwards[begin] || (end == ends.back() && kept.empty()))
      kept.push_back(end);
    else if (end == ends.back())
      kept.back() = end;
  }
  return kept;
}

std::vector<std::uint32_t> stage_ends(const Workload& workload, const Cutter& cutter) {
  if (!workload.is_chain) return ends_with_backwards(workload, cutter.ends());
  std::vector<std::uint32_t> ends(workload.forwards);
  std::iota(ends.begin(), ends.end(), 1U);
  return ends;
}

/// Fills the forwards of each stage and its output.
void cut(ChainView& view, const Workload& workload, std::vector<std::uint32_t>& stage_of) {
  const Cutter cutter(workload);
  std::uint32_t begin = 0;
  for (const std::uint32_t end : stage_ends(workload, cutter)) {
    ChainStage stage;
    stage.forward_begin = begin;
    stage.forward_end = end;
    if (end < workload.forwards) stage.output = cutter.boundary(end - 1);
    if (workload.is_chain)
      stage.output_bytes = workload[workload.list(workload.operators[begin].bare).front()].bytes;
    else if (stage.output != kNoTensor)
      stage.output_bytes = workload[stage.output].bytes;
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

/// Adds up the gradients of step lifetime that a later stage's backward makes and this one reads;
/// after the last stage the gradient that its own backward makes and nothing reads.
void add_gradients(ChainView& view, const Workload& workload,
                   const std::vector<std::uint32_t>& stage_of) {
  const auto is_delta = [&](TensorId id) {
    return workload[id].tensor_class == TensorClass::gradient &&
           workload[id].lifetime == Lifetime::step;
  };
  std::vector<std::uint32_t> made_in(workload.tensors.size(), kNone), read_in(made_in);
  for (std::uint32_t b = workload.forwards; b < workload.optimizer_begin; ++b) {
    const Operator& op = workload.operators[b];
    const std::uint32_t stage = stage_of[static_cast<std::size_t>(op.forward)];
    for (const TensorId id : workload.list(op.reads)) {
      if (!is_delta(id) || read_in[index(id)] == stage) continue;
      read_in[index(id)] = stage;
      if (made_in[index(id)] != kNone && made_in[index(id)] > stage)
        view.stages[stage].gradient_bytes += workload[id].bytes;
    }
    for (const TensorId id : workload.list(op.kept))
      if (is_delta(id) && made_in[index(id)] == kNone) made_in[index(id)] = stage;
  }
  for (std::size_t t = 0; t < made_in.size(); ++t)
    if (!view.stages.empty() && made_in[t] == view.stages.size() - 1 && read_in[t] == kNone)
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
  ChainView view;
  std::vector<std::uint32_t> stage_of(workload.forwards);
  cut(view, workload, stage_of);
  collect_backwards(view, workload, stage_of);
  add_gradients(view, workload, stage_of);
  add_storages(view, workload);
  return view;
}

}  // namespace plimsoll
