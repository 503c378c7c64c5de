#include "plan/check/plan_checker.hpp"

#include "plan/check/in_place_order.hpp"
#include "plan/check/placement_overlaps.hpp"
#include "plan/check/placement_problems.hpp"
#include "plan/check/plan_ranges.hpp"
#include "plan/core/generator_runs.hpp"
#include "plan/core/mirror_problems.hpp"
#include "plan/core/readers.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostProblems = 20;

class Checker {
 public:
  Checker(const Plan& plan, const Workload& workload, const Platform& platform,
          const Topology& topology, const OrderLimits& limits)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        topology_(topology),
        limits_(limits),
        written_(plan.buffers.size()),
        of_ranks_(workload.tensors.size()),
        read_values_(workload),
        written_values_(workload),
        has_generators_(std::ranges::any_of(
            workload.operators, [](const Operator& op) { return op.generator != kNoTensor; })),
        generators_(workload),
        last_in_lanes_(plan) {
    for (const Operator& op : workload.operators)
      if (op.collective.kind != CollectiveKind::none)
        for (const TensorList list : {op.reads, op.kept})
          for (const TensorId tensor : workload.list(list)) of_ranks_.insert(tensor);
    for (const Operator& op : workload.operators)
      if (is_pass(op.collective.kind)) note_pass(workload.list(op.reads), workload.list(op.kept));
    for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
      if (moves_state(workload.operators[op].collective.kind))
        for (const auto& moved : moved_state(workload, OperatorId{op})) moved_.push_back(moved);
    std::ranges::sort(moved_);
  }

  PlanProblems run() {
    problems_ = check_ranges(plan_, workload_, platform_);
    if (problems_.empty()) check_lanes();
    if (problems_.empty()) check_steps();
    if (problems_.empty())
      problems_ = placement_problems(plan_, workload_, platform_, kMostProblems);
    if (problems_.empty()) problems_ = mirror_problems(plan_, platform_, topology_, kMostProblems);
    if (problems_.empty()) check_initial();
    if (problems_.empty()) readers_.emplace(plan_);
    if (problems_.empty()) check_buffers_and_releases();
    if (problems_.empty()) check_completeness();
    if (problems_.empty()) check_changes();
    if (problems_.empty())
      problems_ = placement_overlaps(plan_, *readers_, workload_, platform_, kMostProblems);
    return {std::move(problems_), is_undecided_};
  }

 private:
  [[nodiscard]] bool is_full() const { return problems_.size() >= kMostProblems; }
  template <class... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    if (!is_full()) problems_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::string name(StepId step) const { return describe(plan_, step, workload_, platform_); }
  std::string name(BufferId buffer) const {
    return fmt::format("`{}` in `{}`", workload_[plan_[buffer].tensor].name,
                       platform_[plan_[buffer].memory].name);
  }

  void check_lanes() {
    for (const Lane& lane : plan_.lanes) {
      if (lane.kind == Lane::Kind::stream) {
        if (lane.stream >= platform_[lane.processor].streams)
          refuse("`{}` has no stream {}", platform_[lane.processor].name, lane.stream);
      } else if (!topology_.route(lane.from, lane.to)) {
        refuse("no link leads from `{}` to `{}`", platform_[lane.from].name,
               platform_[lane.to].name);
      }
    }
    check_lanes_differ();
  }

  /// A compute stream runs one step at a time, that of a channel starts its moves in one order: two lanes
  /// of one place would be two of each.
  void check_lanes_differ() {
    const auto place = [&](std::uint32_t l) {
      const Lane& lane = plan_.lanes[l];
      const bool on_stream = lane.kind == Lane::Kind::stream;
      return on_stream ? std::tuple(lane.kind, index(lane.processor), 0u, 0u, lane.stream)
                       : std::tuple(lane.kind, index(lane.from), index(lane.to),
                                    lane.image ? index(lane.image->from) + 1 : 0u, lane.stream);
    };
    std::vector<std::uint32_t> order(plan_.lanes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, place);
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (place(order[i]) != place(order[i - 1])) continue;
      const Lane& lane = plan_.lanes[order[i]];
      if (lane.kind == Lane::Kind::stream)
        refuse("lanes {} and {} are both stream {} of `{}`; expected one lane for a stream",
               order[i - 1], order[i], lane.stream, platform_[lane.processor].name);
      else
        refuse(
            "lanes {} and {} are both the channel from `{}` to `{}`; expected one lane for a "
            "channel",
            order[i - 1], order[i], platform_[lane.from].name, platform_[lane.to].name);
    }
  }

  void check_steps() {
    for (std::uint32_t s = 0; s < plan_.steps.size() && !is_full(); ++s) {
      const Step& step = plan_.steps[s];
      const bool on_stream = plan_[step.lane].kind == Lane::Kind::stream;
      if (on_stream == is_move(step.kind))
        refuse("step {} is in a lane of the wrong kind", s);
      else if (step.duration && is_move(step.kind))
        refuse("{}: only what computes states a duration", name(StepId{s}));
      else if (step.kind == StepKind::copy)
        check_copy(StepId{s});
      else if (step.kind == StepKind::reduce)
        check_reduction(StepId{s});
      else
        check_compute(StepId{s});
    }
  }

  void check_copy(StepId id) {
    const Step& step = plan_[id];
    const Lane& lane = plan_[step.lane];
    const auto reads = plan_.list(step.reads), writes = plan_.list(step.writes);
    if (reads.size() != 1 || writes.size() != 1)
      return refuse("a copy reads {} buffers and writes {}; expected one of each", reads.size(),
                    writes.size());
    if (lane.image) return refuse("{}: a channel with an image carries reductions only", name(id));
    const Buffer &from = plan_[reads[0]], &to = plan_[writes[0]];
    if (from.memory != lane.from || to.memory != lane.to)
      refuse("{}: its buffers are not in the memories of its channel", name(id));
    if (from.tensor != to.tensor && workload_[to.tensor].inside != from.tensor)
      refuse("{}: it reads `{}`, which does not hold that value", name(id),
             workload_[from.tensor].name);
    if (from.microbatch != to.microbatch || from.instance != to.instance)
      refuse("{}: source and destination are of different microbatches or runs", name(id));
    if (step.source != SourceRelease::keep && !may_go(from))
      refuse("{}: its source cannot be released", name(id));
    if (step.source == SourceRelease::progressive &&
        memory_in(plan_, platform_, lane.from).allocator != AllocatorKind::ideal)
      refuse("{}: progressive release needs the `ideal` allocator in `{}`", name(id),
             platform_[lane.from].name);
    if (step.source == SourceRelease::progressive && crosses_fair_link(lane))
      refuse("{}: progressive release needs `fifo` links", name(id));
  }

  void check_reduction(StepId id) {
    const Step& step = plan_[id];
    const Lane& lane = plan_[step.lane];
    const auto reads = plan_.list(step.reads);
    if (step.writes.begin != step.writes.end) refuse("{} writes a buffer", name(id));
    if (reads.empty() || (!lane.comes_back() && reads.size() % 2 != 0))
      return refuse("{}: it reads {} buffers; expected sources and, of each, what it changes",
                    name(id), reads.size());
    if (lane.from == lane.to) refuse("{} leads nowhere", name(id));
    const std::size_t sources = moved_buffers(plan_, step).size();
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const Buffer& buffer = plan_[reads[i]];
      if (buffer.memory != (i < sources ? lane.from : lane.arrives_in()))
        refuse("{}: {} is not in the memories of its channel", name(id), name(reads[i]));
      if (!may_be_reduced(buffer.tensor))
        refuse("{}: {} is no parameter, no gradient of one, and of no collective", name(id),
               name(reads[i]));
      if (i >= sources && !becomes(plan_[reads[i - sources]].tensor, buffer.tensor))
        refuse("{}: it changes {}, which is none of what it reads", name(id), name(reads[i]));
    }
  }

  void note_pass(std::span<const TensorId> held, std::span<const TensorId> made) {
    passed_.resize(workload_.tensors.size(), kNoTensor);
    for (std::size_t i = 0; i < std::min(held.size(), made.size()); ++i)
      passed_[index(held[i])] = made[i];
  }

  /// Whether a reduction of the one changes the other: the same, or what ranks pass it on as.
  bool becomes(TensorId from, TensorId to) const {
    return from == to || (!passed_.empty() && passed_[index(from)] == to) ||
           std::ranges::binary_search(moved_, std::pair(from, to));
  }

  bool may_be_reduced(TensorId tensor) const {
    const Tensor& it = workload_[tensor];
    const bool is_of_parameters =
        it.tensor_class == TensorClass::parameter ||
        (it.tensor_class == TensorClass::gradient && it.lifetime == Lifetime::resident);
    return it.lifetime == Lifetime::accumulated || is_of_parameters || of_ranks_.has(tensor);
  }

  /// Whether a buffer may ever be released.
  bool may_go(const Buffer& buffer) const {
    const Lifetime lifetime = workload_[buffer.tensor].lifetime;
    return lifetime == Lifetime::step || lifetime == Lifetime::accumulated;
  }

  bool crosses_fair_link(const Lane& lane) const {
    return std::ranges::any_of(topology_.route(lane.from, lane.to)->hops, [&](const Hop& hop) {
      return platform_[hop.link].sharing == Sharing::fair;
    });
  }

  bool holds(BufferId buffer, TensorId value, std::uint32_t microbatch,
             const WorkingMemories& memories) const {
    return holds_value(plan_[buffer], value, microbatch, memories, workload_);
  }

  void check_compute(StepId id) {
    const Step& step = plan_[id];
    const auto writes = plan_.list(step.writes);
    unmatched_.clear();
    for (std::uint32_t w = 0; w < writes.size(); ++w)
      unmatched_.push_back({plan_[writes[w]].tensor, w, false});
    std::ranges::sort(unmatched_, {},
                      [](const Written& it) { return std::pair(it.tensor, it.at); });
    check_reached(id);
    check_part(id, step.op, step.microbatch, step.form);
    if (step.kind == StepKind::pair) {
      check_part(id, step.second, step.second_microbatch, step.second_form);
      if (!step.duration) refuse("{}: an overlapped pair needs a duration", name(id));
      written_.clear();
      for (const BufferId buffer : writes) written_.insert(buffer);
      for (const BufferId buffer : plan_.list(step.reads))
        if (!is_full() && written_.has(buffer))
          refuse("{} reads {}, which it writes itself", name(id), name(buffer));
    }
    std::ranges::sort(unmatched_, {}, &Written::at);
    for (const Written& it : unmatched_)
      if (!is_full() && !it.is_matched)
        refuse("{} writes {}, which is none of its outputs", name(id), name(writes[it.at]));
  }

  /// What an operator uses in memories that its processor reaches beside its own.
  void check_reached(StepId id) {
    const Step& step = plan_[id];
    const Processor& processor = platform_[plan_[step.lane].processor];
    if (processor.reaches.empty()) return;
    const MemoryId home = processor.memory;
    const auto check = [&](BufferId buffer, const char* does, bool grants) {
      const MemoryId memory = plan_[buffer].memory;
      if (memory == home || is_full()) return;
      if (!plan_.mirrors.empty())
        refuse("{} {} {}: in a plan with mirrors expected `{}`", name(id), does, name(buffer),
               platform_[home].name);
      if (grants && std::ranges::find(plan_.ordered_grants, memory) != plan_.ordered_grants.end())
        refuse("{} {} {}, which grants in issue order; expected a memory that does not", name(id),
               does, name(buffer));
    };
    for (const BufferId buffer : plan_.list(step.reads)) check(buffer, "reads", false);
    for (const BufferId buffer : plan_.list(step.writes)) check(buffer, "writes", true);
  }

  void check_part(StepId id, OperatorId op_id, std::uint32_t microbatch, Form form) {
    const Step& step = plan_[id];
    const Operator& op = workload_[op_id];
    const Processor& processor = platform_[plan_[step.lane].processor];
    const WorkingMemories memories(processor);
    const auto writes = plan_.list(step.writes);
    if (moves_state(op.collective.kind))
      return check_move_of_state(id, op_id, microbatch, memories);
    read_values_.gather(plan_, plan_.list(step.reads), microbatch, memories);
    // The other operator of a pair may have begun a gradient that this one adds to.
    written_values_.gather(plan_, writes, microbatch, memories);
    for (const TensorId value : workload_.list(op.reads))
      if (!read_values_.has(value))
        refuse("{} does not read `{}` from `{}`", name(id), workload_[value].name,
               platform_[processor.memory].name);
    if (has_generators_) check_generator(id, op_id, microbatch, memories);
    for (const TensorId tensor : workload_.list(form == Form::keep ? op.kept : op.bare)) {
      const auto candidates = std::ranges::equal_range(unmatched_, tensor, {}, &Written::tensor);
      const auto written = std::ranges::find_if(candidates, [&](const Written& it) {
        return !it.is_matched && holds(writes[it.at], tensor, microbatch, memories);
      });
      if (written != candidates.end()) {
        const BufferId buffer = writes[written->at];
        if (step.kind == StepKind::compute && plan_[buffer].instance != step.instance)
          refuse("{} writes {} of another run", name(id), name(buffer));
        written->is_matched = true;
      } else if (op.phase == Phase::forward ||
                 !(read_values_.has(tensor) || written_values_.has(tensor))) {
        refuse("{} does not write its output `{}`", name(id), workload_[tensor].name);
      }
    }
  }

  /// Of a fetch or store, what the processor has of it: one of each pair, or both; the moves between
  /// them are reductions. What others still change when it is issued, the move alone reads.
  void check_move_of_state(StepId id, OperatorId op, std::uint32_t microbatch,
                           const WorkingMemories& memories) {
    const Step& step = plan_[id];
    const auto has = [&](Slice buffers, TensorId tensor) {
      return std::ranges::any_of(plan_.list(buffers), [&](BufferId buffer) {
        return holds(buffer, tensor, microbatch, memories);
      });
    };
    for (const auto& [from, to] : moved_state(workload_, op))
      if (!has(step.reads, from) && !has(step.reads, to) && !has(step.writes, to) &&
          !is_moved_after(id, from, to, microbatch, memories))
        refuse("{} has neither `{}` nor `{}`", name(id), workload_[from].name, workload_[to].name);
    for (Written& it : unmatched_)
      for (const auto& [from, to] : moved_state(workload_, op))
        if (it.tensor == to) it.is_matched = true;
  }

  /// Whether a reduction that waits for the step moves one to the other from where the processor works.
  bool is_moved_after(StepId id, TensorId from, TensorId to, std::uint32_t microbatch,
                      const WorkingMemories& memories) {
    if (moves_behind_.empty()) find_moves();
    const auto its = std::ranges::equal_range(moves_behind_, id, {}, &Behind::first);
    return std::ranges::any_of(its, [&](const Behind& it) {
      const auto moved = moved_buffers(plan_, plan_[it.second]);
      const auto changed = changed_buffers(plan_, plan_[it.second]);
      for (std::size_t i = 0; i < moved.size(); ++i)
        if (holds(moved[i], from, microbatch, memories) && plan_[changed[i]].tensor == to)
          return true;
      return false;
    });
  }

  void find_moves() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s)
      if (moves_state(plan_, plan_.steps[s], workload_))
        for (const Dependency& it : plan_.after(plan_.steps[s]))
          if (it.edge == Dependency::Edge::after_end) moves_behind_.emplace_back(it.on, StepId{s});
    std::ranges::sort(moves_behind_);
  }

  /// The first run of a random operator may keep the state of the generator, later ones may need it.
  void check_generator(StepId id, OperatorId op, std::uint32_t microbatch,
                       const WorkingMemories& memories) {
    const Step& step = plan_[id];
    const GeneratorNeed need =
        generators_.next(step.lane, op, microbatch, step.kind == StepKind::compute);
    const TensorId state = workload_[op].generator;
    if (state == kNoTensor) return;
    if (need == GeneratorNeed::kept && !read_values_.has(state))
      refuse("{} draws random numbers again, and does not read `{}` from `{}`", name(id),
             workload_[state].name, platform_[platform_[plan_[step.lane].processor].memory].name);
    if (need != GeneratorNeed::first) return;
    const auto writes = plan_.list(step.writes);
    const auto kept = std::ranges::find_if(unmatched_, [&](const Written& it) {
      return it.tensor == state && holds(writes[it.at], state, microbatch, memories);
    });
    if (kept != unmatched_.end()) kept->is_matched = true;
  }

  void check_initial() {
    std::vector<bool> placed(plan_.buffers.size(), false);
    for (const BufferId buffer : plan_.initial) {
      const auto b = static_cast<std::size_t>(buffer);
      const Lifetime lifetime = workload_[plan_[buffer].tensor].lifetime;
      if (placed[b]) refuse("{} is placed twice before the first step", name(buffer));
      if (lifetime != Lifetime::resident && lifetime != Lifetime::input)
        refuse("{} is in place before the first step, but an operator makes it", name(buffer));
      placed[b] = true;
    }
  }

  void check_buffers_and_releases() {
    const Readers& readers = *readers_;
    std::vector<std::uint8_t> made(plan_.buffers.size(), 0), freed(plan_.buffers.size(), 0);
    for (const BufferId buffer : plan_.initial) ++made[static_cast<std::size_t>(buffer)];
    for (const Step& step : plan_.steps)
      for (const BufferId buffer : plan_.list(step.writes)) {
        auto& count = made[static_cast<std::size_t>(buffer)];
        if (count < 2) ++count;
      }
    for (std::uint32_t b = 0; b < plan_.buffers.size() && !is_full(); ++b) {
      const BufferId buffer{b};
      if (made[b] > 1) refuse("{} is written twice", name(buffer));
      if (made[b] == 0) refuse("{} is never written", name(buffer));
      freed[b] = static_cast<std::uint8_t>(takers(readers.of(buffer)));
      if (freed[b] > 1) refuse("{} is taken away twice", name(buffer));
    }
    for (const Release& release : plan_.releases)
      if (!is_full()) check_release(release, readers, freed);
    if (!is_full()) check_what_stays(freed);
  }

  /// Of what stays to the end and is made several times, the others may go.
  void check_what_stays(const std::vector<std::uint8_t>& freed) {
    std::set<std::pair<TensorId, std::uint32_t>> there;
    std::vector<BufferId> gone;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (workload_[buffer.tensor].lifetime != Lifetime::stays) continue;
      if (freed[b] == 0)
        there.emplace(buffer.tensor, buffer.microbatch);
      else
        gone.push_back(BufferId{b});
    }
    for (const BufferId buffer : gone)
      if (!there.contains({plan_[buffer].tensor, plan_[buffer].microbatch}) && !is_full())
        refuse("{} is released, but it stays to the end", name(buffer));
  }

  /// Copies that take the buffer away; more than one is one too many.
  std::size_t takers(std::span<const StepId> readers) const {
    const auto takes = [&](StepId s) {
      return plan_[s].kind == StepKind::copy && plan_[s].source != SourceRelease::keep;
    };
    return std::min<std::size_t>(2,
                                 static_cast<std::size_t>(std::ranges::count_if(readers, takes)));
  }

  /// Whether a copy within its memory makes a later version of the buffer.
  bool has_successor(BufferId buffer, const Readers& readers) const {
    return std::ranges::any_of(readers.of(buffer), [&](StepId s) {
      return plan_[s].kind == StepKind::copy && plan_[plan_[s].lane].to == plan_[buffer].memory;
    });
  }

  void check_release(const Release& release, const Readers& readers,
                     std::vector<std::uint8_t>& freed) {
    const auto b = static_cast<std::size_t>(release.buffer);
    const Lifetime lifetime = workload_[plan_[release.buffer].tensor].lifetime;
    if (freed[b] != 0) return refuse("{} is released twice", name(release.buffer));
    freed[b] = 1;
    const bool was_there = readers.producer(release.buffer) == kNoStep;
    if (was_there && (lifetime == Lifetime::input ||
                      (lifetime == Lifetime::resident && !has_successor(release.buffer, readers))))
      refuse("{} is released, but it is resident", name(release.buffer));
    const auto after = plan_.after(release);
    waited_for_.clear();
    for (const StepId step : after) waited_for_.emplace_back(plan_[step].lane, step);
    std::ranges::sort(waited_for_);
    if (after.empty()) refuse("{} is released without waiting for anything", name(release.buffer));
    const StepId producer = readers.producer(release.buffer);
    std::span<const StepId> users = readers.of(release.buffer);
    if (users.empty() && producer != kNoStep) users = std::span(&producer, 1);
    for (const StepId user : last_in_lanes_.of(users)) {
      // In a stream a later step will do.
      const LaneId lane = plan_[user].lane;
      const auto found = std::ranges::lower_bound(waited_for_, std::pair(lane, user));
      const bool waits = found != waited_for_.end() && found->first == lane &&
                         (found->second == user || plan_[lane].kind == Lane::Kind::stream);
      if (!waits) refuse("{} is released before {} has read it", name(release.buffer), name(user));
    }
  }

  void check_completeness() {
    const std::size_t operators = workload_.operators.size();
    std::vector<std::uint32_t> runs(operators * plan_.microbatches, 0);
    const auto count = [&](OperatorId op, std::uint32_t microbatch) {
      if (microbatch < plan_.microbatches)
        ++runs[microbatch * operators + static_cast<std::size_t>(op)];
    };
    for (const Step& step : plan_.steps) {
      if (is_move(step.kind)) continue;
      count(step.op, step.microbatch);
      if (step.kind == StepKind::pair) count(step.second, step.second_microbatch);
    }
    for (std::uint32_t m = 0; m < plan_.microbatches; ++m)
      for (std::size_t op = 0; op < operators; ++op) {
        const Operator& it = workload_.operators[op];
        const std::uint32_t times = runs[m * operators + op];
        if (it.phase == Phase::optimizer) continue;
        if (times == 0) refuse("`{}` of microbatch {} is left out", it.name, m);
        if (times > 1 && it.phase != Phase::forward)
          refuse("`{}` of microbatch {} runs {} times", it.name, m, times);
      }
    check_optimizer(runs);
  }

  /// An optimizer operator runs once a step, or after each of several microbatches.
  void check_optimizer(const std::vector<std::uint32_t>& runs) {
    const std::size_t operators = workload_.operators.size();
    for (std::size_t op = workload_.optimizer_begin; op < operators; ++op) {
      std::uint32_t times = 0;
      for (std::uint32_t m = 0; m < plan_.microbatches; ++m) times += runs[m * operators + op];
      if (times == 0) refuse("`{}` is left out", workload_.operators[op].name);
    }
  }

  static const char* to_text(Unordered::Doubt doubt) {
    switch (doubt) {
      case Unordered::Doubt::none:
        return "nothing orders the two; expected one of them after the end of the other";
      case Unordered::Doubt::order:
        return "too many steps lie between the two to find what orders them; expected one of them "
               "directly after the end of the other";
      case Unordered::Doubt::parts:
        return "nothing orders the two, of a buffer in too many parts to find which of them meet; "
               "expected one of them after the end of the other";
    }
    return "";
  }

  void check_changes() {
    const std::vector<Unordered> found =
        unordered_changes(plan_, *readers_, workload_, platform_, kMostProblems, limits_);
    is_undecided_ = !found.empty() && std::ranges::none_of(found, [](const Unordered& it) {
      return it.doubt == Unordered::Doubt::none;
    });
    for (const Unordered& it : found) {
      const auto does = [](bool changes) { return changes ? "changes" : "reads"; };
      refuse("steps {} and {}: {} {} {}, {} {} it, and {}", static_cast<std::uint32_t>(it.first),
             static_cast<std::uint32_t>(it.second), name(it.first), does(it.first_changes),
             name(it.buffer), name(it.second), does(it.second_changes), to_text(it.doubt));
    }
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Topology& topology_;
  const OrderLimits limits_;
  std::vector<std::string> problems_;
  bool is_undecided_ = false;
  std::optional<Readers> readers_;
  /// What the step that is looked at writes, by tensor: where in its list.
  struct Written {
    TensorId tensor{};
    std::uint32_t at = 0;
    bool is_matched = false;  ///< an operator of the step has it among its outputs
  };
  std::vector<Written> unmatched_;
  IdSet<BufferId> written_;
  IdSet<TensorId> of_ranks_;      ///< read or made by collectives
  std::vector<TensorId> passed_;  ///< by tensor: what ranks pass it on as; none where nothing is
  std::vector<std::pair<TensorId, TensorId>> moved_;  ///< state and what it becomes, sorted
  using Behind = std::pair<StepId, StepId>;
  std::vector<Behind>
      moves_behind_;  ///< steps, and moves of state that wait for their ends; sorted
  HeldValues read_values_, written_values_;
  const bool has_generators_;
  GeneratorRuns generators_;
  LastInLanes last_in_lanes_;
  /// What the release that is looked at waits for.
  std::vector<std::pair<LaneId, StepId>> waited_for_;
};

}  // namespace

PlanProblems problems_of(const Plan& plan, const Workload& workload, const Platform& platform,
                         const Topology& topology, const OrderLimits& limits) {
  return Checker(plan, workload, platform, topology, limits).run();
}

std::vector<std::string> check_plan(const Plan& plan, const Workload& workload,
                                    const Platform& platform, const Topology& topology) {
  return problems_of(plan, workload, platform, topology).sentences;
}

}  // namespace plimsoll
