#include "plan/build/spread_plan.hpp"

#include "base/dense_id.hpp"
#include "plan/build/collective_choice.hpp"
#include "plan/build/gradient_buckets.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>

namespace plimsoll {
namespace {

constexpr std::size_t kMostSpreadSteps = 20'000'000;

/// A reduce-scatter that came before, or none.
struct Scatter {
  std::vector<RankLevel> levels;
  AllReduce algorithm = AllReduce::ring;
};

class Spreader {
 public:
  Spreader(const Plan& plan, const Workload& workload, const Platform& platform,
           const Spreading& spreading, bool plays_one)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        spreading_(spreading),
        plays_one_(plays_one),
        ranks_(spreading.ranks()),
        played_(plays_one ? 1 : ranks_),
        buckets_(buckets_of(plan, workload, spreading)),
        choice_(spreading, platform) {
    result_.forms.push_back({spreading.algorithm, 0, 1});
    if (!plan.mirrors.empty()) refuse("stands for replicas already");
    if (plan.steady_from_microbatch) refuse("updates parameters on the way");
    if (plan.steps.size() * played_ > kMostSpreadSteps) refuse_size();
    find_memories();
    if (has_homes()) refuse_copies_of_state();
  }

  SpreadPlan run() {
    begin();
    count_own_collectives();
    add_buffers();
    std::size_t next = 0;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      for (std::uint32_t rank = 0; rank < played_; ++rank) {
        add_step(s, rank);
        if (moves_state(collective_kind(plan_.steps[s]))) add_moves_of_state(StepId{s}, rank);
      }
      add_collective_of(StepId{s});
      for (; next < buckets_.size() && index(buckets_[next].after_step) == s; ++next)
        add_bucket(buckets_[next]);
    }
    add_releases();
    return std::move(result_);
  }

 private:
  /// What members of a group hold for a collective: by rank that is played.
  struct Group {
    std::vector<std::uint32_t> ranks;            ///< of all members
    std::vector<std::vector<BufferId>> buffers;  ///< of those that are played
    /// Likewise, where they change others than they send; else none.
    std::vector<std::vector<BufferId>> into;
    std::vector<std::vector<StepId>> before;  ///< likewise: what they wait for
    MemoryId memory{};                        ///< of the first rank
    std::vector<std::uint32_t> levels;        ///< of collectives (sends_in_levels())
    std::uint32_t form = 0;                   ///< in SpreadPlan::forms
    RankPart share;                           ///< of the buffers: what is moved
    OperatorId op = kNoOperator;              ///< that is the collective, if one is
    std::uint32_t number = 0;                 ///< Reduction::collective
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument("a plan of policy `" + plan_.policy + "` " + what +
                                ", and cannot be spread over ranks");
  }
  [[noreturn]] void refuse_size() const {
    throw std::invalid_argument("the plan of all ranks would have more than 2e7 steps");
  }

  [[nodiscard]] bool has_homes() const { return !spreading_.homes.empty(); }

  void refuse_copies_of_state() const {
    for (const Step& step : plan_.steps) {
      if (!is_move(step.kind)) continue;
      const Tensor& moved = workload_[plan_[plan_.list(step.reads).front()].tensor];
      if (moved.home != Home::processor)
        throw std::invalid_argument("a plan of policy `" + plan_.policy + "` copies or sums up `" +
                                    moved.name + "`, which lives in a memory of its own");
    }
  }

  CollectiveKind collective_kind(const Step& step) const {
    return step.kind == StepKind::compute ? workload_[step.op].collective.kind
                                          : CollectiveKind::none;
  }

  void find_memories() {
    memory_.resize(platform_.memories.size());
    device_.assign(platform_.memories.size(), kNone);
    for (std::uint32_t d = 0; d < spreading_.likes.size(); ++d) {
      const auto& likes = spreading_.likes[d];
      const std::uint32_t first = index(platform_[likes.front()].memory);
      device_[first] = d;
      for (const ProcessorId like : likes) memory_[first].push_back(platform_[like].memory);
    }
  }

  MemoryId memory(MemoryId of_first, std::uint32_t rank) const {
    return device_[index(of_first)] == kNone ? of_first : memory_[index(of_first)][rank];
  }

  void begin() {
    Plan& plan = result_.plan;
    plan.policy = plan_.policy;
    plan.notes = plan_.notes;
    plan.microbatches = plan_.microbatches * played_;
    plan.steps.reserve(plan_.steps.size() * played_);
    plan.dependencies.reserve(plan_.dependencies.size() * played_);
    plan.buffer_lists.reserve(plan_.buffer_lists.size() * played_);
    plan.releases.reserve(plan_.releases.size() * played_);
    steps_.reserve(plan_.steps.size() * played_);
    for (std::uint32_t rank = 0; rank < played_; ++rank) {
      for (const Lane& lane : plan_.lanes) lanes_.push_back(lane_of(lane, rank));
      const auto in_rank = [&](MemoryId m) { return rank == 0 || memory(m, rank) != m; };
      for (const MemoryId m : plan_.ordered_grants)
        if (in_rank(m)) plan.ordered_grants.push_back(memory(m, rank));
      for (const auto& [m, limit] : plan_.limits)
        if (in_rank(m)) plan.limits.emplace_back(memory(m, rank), limit);
      for (PlanArena arena : plan_.arenas)
        if (in_rank(arena.memory)) {
          arena.memory = memory(arena.memory, rank);
          plan.arenas.push_back(arena);
        }
    }
    if (plays_one_)
      for (const auto& likes : spreading_.likes)
        for (std::size_t rank = 1; rank < likes.size(); ++rank)
          plan.mirrors.push_back({likes[rank], likes.front()});
  }

  LaneId lane(const Lane& wanted) {
    auto& lanes = result_.plan.lanes;
    const auto next = static_cast<std::uint32_t>(lanes.size());
    const auto [found, is_new] =
        lane_of_.try_emplace({wanted.kind, wanted.processor, wanted.stream, wanted.from, wanted.to,
                              wanted.image.value_or(wanted.from)},
                             LaneId{next});
    if (is_new) lanes.push_back(wanted);
    return found->second;
  }

  LaneId lane_of(Lane it, std::uint32_t rank) {
    if (it.kind == Lane::Kind::stream) {
      const std::uint32_t d = device_[index(platform_[it.processor].memory)];
      it.processor = spreading_.likes[d][rank];
      return lane(it);
    }
    if (rank == 0) note_way(it.from, it.to, 0, 0);
    it.from = memory(it.from, rank);
    it.to = memory(it.to, rank);
    return lane(it);
  }

  void count_own_collectives() {
    for (const Reduction& it : plan_.reductions)
      own_collectives_ = std::max(own_collectives_, it.collective);
    collectives_ = own_collectives_ * played_;
  }

  /// Between memories of the first rank, or to the one that stands for `to` in another.
  void note_way(MemoryId from, MemoryId to, std::uint32_t to_rank, std::uint32_t form) {
    for (const MemoryId m : {from, to})
      if (device_[index(m)] == kNone && std::ranges::count(result_.common, m) == 0)
        result_.common.push_back(m);
    if (from == to && to_rank == 0) return;
    if (device_[index(from)] == kNone || device_[index(to)] == kNone) return;
    const RankWay way{device_[index(from)], device_[index(to)], to_rank, form};
    if (std::ranges::find(result_.ways, way) == result_.ways.end()) result_.ways.push_back(way);
  }

  BufferId buffer(BufferId of_one, std::uint32_t rank) const {
    return BufferId{static_cast<std::uint32_t>(rank * plan_.buffers.size() + index(of_one))};
  }
  StepId step(StepId of_one, std::uint32_t rank) const {
    return steps_[index(of_one) * std::size_t{played_} + rank];
  }

  void add_buffers() {
    Plan& plan = result_.plan;
    plan.buffers.reserve(plan_.buffers.size() * played_);
    for (std::uint32_t rank = 0; rank < played_; ++rank)
      for (Buffer it : plan_.buffers) {
        if (const Home home = workload_[it.tensor].home; home != Home::processor) {
          it.memory = homes_of(it.memory, rank).memory[static_cast<std::size_t>(home)];
          it.offset.reset();
        } else {
          it.memory = memory(it.memory, rank);
        }
        if (workload_[it.tensor].lifetime != Lifetime::resident)
          it.microbatch = it.microbatch * played_ + rank;
        plan.buffers.push_back(it);
      }
    for (std::uint32_t rank = 0; rank < played_; ++rank)
      for (const BufferId id : plan_.initial) plan.initial.push_back(buffer(id, rank));
    open_.resize(plan.buffers.size());
    rounds_.resize(plan.buffers.size());
    if (has_homes()) users_.resize(plan.buffers.size());
    begun_.resize(spreading_.likes.size() * played_);
  }

  /// Of the rank's processor that works in a memory of the first rank.
  const RankHomes& homes_of(MemoryId of_first, std::uint32_t rank) const {
    return spreading_.homes[device_[index(of_first)]][rank];
  }

  /// Where another processor runs the update that a step of the first rank runs: in its stream.
  std::optional<ProcessorId> updates_on(const Step& of_one, std::uint32_t rank) const {
    if (!has_homes() || of_one.kind != StepKind::compute) return std::nullopt;
    const Operator& op = workload_[of_one.op];
    if (op.phase != Phase::optimizer || op.reads.begin == op.reads.end) return std::nullopt;
    return homes_of(platform_[plan_[of_one.lane].processor].memory, rank).updates_on;
  }

  /// Of updates on a processor that need not be able to run anything else.
  const std::vector<Time>& update_times(ProcessorId processor) {
    const auto [found, is_new] = update_times_.try_emplace(processor);
    if (!is_new) return found->second;
    Workload updates = workload_;
    for (std::uint32_t op = 0; op < updates.optimizer_begin; ++op)
      updates.operators[op].given_time = Time{};
    return found->second = durations(updates, platform_, processor);
  }

  /// Those that a step which moves state has where it runs; what it makes elsewhere is there before.
  void keep_here(const Step& it, std::vector<BufferId>& buffers) {
    const MemoryId here = platform_[result_.plan[it.lane].processor].memory;
    std::erase_if(buffers, [&](BufferId id) { return result_.plan[id].memory != here; });
  }

  bool stores_gradients(const Step& of_one) const {
    return collective_kind(of_one) == CollectiveKind::store &&
           workload_[of_one.op].phase != Phase::optimizer;
  }

  /// Of what a step stores, that which ranks reduce meanwhile: its move waits for them, and the
  /// processor goes on.
  void leave_to_moves(std::vector<BufferId>& stored) const {
    std::erase_if(stored, [&](BufferId id) { return !open_[index(id)].empty(); });
  }

  bool is_room_for_gradient(BufferId id) const {
    const Tensor& tensor = workload_[result_.plan[id].tensor];
    return tensor.home != Home::processor && tensor.lifetime == Lifetime::resident;
  }

  /// Where a step has left the stream in which the plan has it, what it uses must be there by other
  /// means. The first of a rank's begins after the backward, with all gradients.
  void wait_for_users(std::uint32_t s, std::uint32_t rank, std::span<const BufferId> buffers,
                      std::vector<Dependency>& after) {
    const auto wait = [&](StepId on) { after.push_back({on, Dependency::Edge::after_end}); };
    for (const BufferId id : buffers)
      for (const StepId on : users_[index(id)]) wait(on);
    const LaneId left = plan_.steps[s].lane;
    const std::uint32_t device = device_[index(platform_[plan_[left].processor].memory)];
    Begun& begun = begun_[device * played_ + rank];
    if (begun.updates) return;
    begun.updates = true;
    for (const StepId on : begun.gradients) wait(on);
    for (std::uint32_t before = s; before-- > 0;)
      if (plan_.steps[before].lane == left) return wait(step(StepId{before}, rank));
  }

  /// The last in each stream, and every move.
  void note_users(StepId id, std::span<const BufferId> buffers) {
    const LaneId lane = result_.plan[id].lane;
    const bool is_stream = result_.plan[lane].kind == Lane::Kind::stream;
    for (const BufferId buffer : buffers) {
      auto& users = users_[index(buffer)];
      if (is_stream) std::erase_if(users, [&](StepId it) { return result_.plan[it].lane == lane; });
      if (users.empty() || users.back() != id) users.push_back(id);
    }
  }

  Slice add_list(std::span<const BufferId> buffers) {
    auto& lists = result_.plan.buffer_lists;
    const auto from = static_cast<std::uint32_t>(lists.size());
    lists.insert(lists.end(), buffers.begin(), buffers.end());
    return {from, static_cast<std::uint32_t>(lists.size())};
  }

  std::vector<BufferId> of_rank(std::span<const BufferId> of_one, std::uint32_t rank) const {
    std::vector<BufferId> all;
    set_of_rank(of_one, rank, all);
    return all;
  }
  void set_of_rank(std::span<const BufferId> of_one, std::uint32_t rank,
                   std::vector<BufferId>& all) const {
    all.clear();
    for (const BufferId id : of_one) all.push_back(buffer(id, rank));
  }

  StepId push(Step step, std::vector<Dependency>& after) {
    Plan& plan = result_.plan;
    if (plan.steps.size() >= kMostSpreadSteps) refuse_size();
    const auto key = [](const Dependency& d) { return std::pair(d.on, d.edge); };
    std::ranges::sort(after, {}, key);
    const auto last = std::ranges::unique(after, {}, key).begin();
    step.after.begin = static_cast<std::uint32_t>(plan.dependencies.size());
    plan.dependencies.insert(plan.dependencies.end(), after.begin(), last);
    step.after.end = static_cast<std::uint32_t>(plan.dependencies.size());
    plan.steps.push_back(step);
    return StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
  }

  /// But that of a scatter whose sum the one before has not changed yet: their moves follow each
  /// other, and the processor goes on.
  void wait_for_rounds(const Step& of_one, std::span<const BufferId> buffers,
                       std::vector<Dependency>& after) const {
    const bool scatters = of_one.kind == StepKind::compute &&
                          workload_[of_one.op].collective.kind == CollectiveKind::reduce_scatter;
    for (const BufferId id : buffers)
      if (!scatters || !is_summed_up(result_.plan[id].tensor))
        for (const StepId on : open_[index(id)]) after.push_back({on, Dependency::Edge::after_end});
  }

  /// Whether it is a gradient to which several microbatches add.
  bool is_summed_up(TensorId id) const {
    const Tensor& tensor = workload_[id];
    return tensor.tensor_class == TensorClass::gradient &&
           (tensor.lifetime == Lifetime::accumulated || tensor.lifetime == Lifetime::resident);
  }

  void add_step(std::uint32_t s, std::uint32_t rank) {
    const Step& of_one = plan_.steps[s];
    Step it = of_one;
    const auto elsewhere = updates_on(of_one, rank);
    it.lane = elsewhere ? lane(Lane{Lane::Kind::stream, *elsewhere, 0, {}, {}, {}})
                        : lanes_[rank * plan_.lanes.size() + index(it.lane)];
    if (elsewhere) it.duration = update_times(*elsewhere)[index(it.op)];
    it.microbatch = it.microbatch * played_ + rank;
    it.second_microbatch = it.second_microbatch * played_ + rank;
    auto& [reads, writes, after] = scratch_;
    set_of_rank(plan_.list(of_one.reads), rank, reads);
    set_of_rank(plan_.list(of_one.writes), rank, writes);
    after.clear();
    for (const Dependency& dependency : plan_.after(of_one))
      after.push_back({step(dependency.on, rank), dependency.edge});
    if (has_homes()) {
      std::ranges::copy_if(writes, std::back_inserter(result_.plan.initial),
                           [&](BufferId id) { return is_room_for_gradient(id); });
      std::erase_if(writes, [&](BufferId id) { return is_room_for_gradient(id); });
      if (moves_state(collective_kind(of_one)))
        for (auto* buffers : {&reads, &writes}) keep_here(it, *buffers);
      if (stores_gradients(of_one)) leave_to_moves(reads);
      if (elsewhere)
        for (const auto* buffers : {&reads, &writes}) wait_for_users(s, rank, *buffers, after);
    }
    it.reads = add_list(reads);
    it.writes = add_list(writes);
    wait_for_rounds(of_one, reads, after);
    if (it.kind == StepKind::reduce) {
      it.reduction = static_cast<std::uint32_t>(result_.plan.reductions.size());
      Reduction& of_rank = result_.plan.reductions.emplace_back(plan_.reductions[of_one.reduction]);
      if (of_rank.collective > 0) of_rank.collective += rank * own_collectives_;
    }
    steps_.push_back(push(it, after));
    if (has_homes())
      for (const auto* buffers : {&reads, &writes}) note_users(steps_.back(), *buffers);
  }

  /// The buffer of a step of the plan that holds the tensor.
  std::optional<BufferId> that_holds(const Step& step, TensorId tensor) const {
    for (const Slice slice : {step.reads, step.writes})
      for (const BufferId id : plan_.list(slice))
        if (plan_[id].tensor == tensor) return id;
    return std::nullopt;
  }

  /// One for each pair of memories, of all that it moves between the two.
  void add_moves_of_state(StepId id, std::uint32_t rank) {
    const Step& of_one = plan_[id];
    std::map<std::pair<MemoryId, MemoryId>, std::pair<std::vector<BufferId>, std::vector<BufferId>>>
        moves;
    for (const auto& [from, to] : moved_state(workload_, of_one.op)) {
      const auto source = that_holds(of_one, from), target = that_holds(of_one, to);
      if (!source || !target) refuse("leaves out state that it moves");
      const BufferId of_rank[] = {buffer(*source, rank), buffer(*target, rank)};
      auto& [sources, targets] =
          moves[{result_.plan[of_rank[0]].memory, result_.plan[of_rank[1]].memory}];
      sources.push_back(of_rank[0]);
      targets.push_back(of_rank[1]);
    }
    const bool is_gradient = stores_gradients(of_one);
    for (auto& [way, buffers] : moves) {
      auto& [sources, targets] = buffers;
      std::vector<StepId> waits{step(id, rank)};
      for (const auto* all : {&sources, &targets})
        for (const BufferId it : *all)
          for (const auto* last : {&users_[index(it)], &open_[index(it)]})
            waits.insert(waits.end(), last->begin(), last->end());
      note_way(way.first, way.second, 0, 0);
      std::vector<BufferId> all = sources;
      all.insert(all.end(), targets.begin(), targets.end());
      const StepId round =
          add_round(Lane{Lane::Kind::channel, {}, 0, way.first, way.second, {}}, all,
                    {0, 1, 1, is_gradient && of_one.microbatch > 0, 0, 1, 0, of_one.op}, waits);
      for (const BufferId it : all) open_[index(it)] = {round};
      note_users(round, all);
      if (is_gradient)
        begun_[device_[index(platform_[plan_[of_one.lane].processor].memory)] * played_ + rank]
            .gradients.push_back(round);
    }
  }

  /// Of those that a step reads or writes, the ones that hold one of the tensors.
  std::vector<BufferId> that_hold(const Step& step, TensorList tensors) const {
    std::vector<BufferId> found;
    const auto wanted = workload_.list(tensors);
    for (const Slice slice : {step.reads, step.writes})
      for (const BufferId id : plan_.list(slice))
        if (std::ranges::find(wanted, plan_[id].tensor) != wanted.end()) found.push_back(id);
    return found;
  }

  void add_collective_of(StepId id) {
    const Step& step = plan_[id];
    if (step.kind != StepKind::compute) return;
    const Operator& op = workload_[step.op];
    if (op.collective.kind == CollectiveKind::none || moves_state(op.collective.kind)) return;
    const CollectiveKind kind = op.collective.kind;
    const bool passes = is_pass(kind);
    const bool makes_others =
        passes || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
    std::vector<BufferId> moved = that_hold(step, moved_by(op)), made;
    const std::vector<StepId> before{id};
    const MemoryId where = platform_[plan_[step.lane].processor].memory;
    // What it leaves, or adds to a sum, is there when it has ended.
    if (makes_others) {
      made = that_hold(step, op.kept);
      const auto is_sum = [&](BufferId held) { return is_summed_up(plan_[held].tensor); };
      std::ranges::copy_if(moved, std::back_inserter(made), is_sum);
      std::erase_if(moved, is_sum);
    }
    add_collective(op.collective, step.op, where, moved, made, before);
  }

  void add_bucket(const GradientBucket& bucket) {
    add_collective(bucket.collective, kNoOperator, bucket.memory, bucket.buffers, {}, bucket.users);
    if (bucket.collective.kind != CollectiveKind::reduce_scatter || !spreading_.has_copies())
      return;
    const CollectiveForm& form =
        result_.forms[form_of(bucket.collective, bucket.memory, bytes_of(bucket.buffers))];
    const Scatter scatter{levels_of(spreading_.axes, bucket.collective, form), form.algorithm};
    add_collective({CollectiveKind::all_reduce, MeshAxis::replica}, kNoOperator, bucket.memory,
                   bucket.buffers, {}, bucket.users, scatter);
  }

  [[nodiscard]] Bytes bytes_of(std::span<const BufferId> buffers) const {
    Bytes bytes;
    for (const BufferId id : buffers) bytes += workload_[plan_[id].tensor].bytes;
    return bytes;
  }

  /// Of all groups along its axes, or of that of the first rank: of the part that a scatter has left each,
  /// or of all.
  void add_collective(const Collective& collective, OperatorId op, MemoryId where,
                      const std::vector<BufferId>& moved, const std::vector<BufferId>& made,
                      const std::vector<StepId>& before, const Scatter& scatter = {}) {
    if (moved.empty()) return;
    const std::int64_t parts = part_left(0, scatter.levels, scatter.algorithm).of;
    const std::uint32_t form =
        form_of(collective, where, Bytes{(bytes_of(moved).count() + parts - 1) / parts});
    const std::vector<RankLevel> levels =
        levels_of(spreading_.axes, collective, result_.forms[form]);
    if (levels.empty()) return;
    const bool passes = is_pass(collective.kind);
    for (std::uint32_t rank = 0; rank < played_; ++rank) {
      if (!is_first(rank, levels)) continue;
      Group group{.ranks = members_of(rank, levels),
                  .memory = where,
                  .form = form,
                  .share = part_left(rank, scatter.levels, scatter.algorithm),
                  .op = op,
                  .number = ++collectives_};
      for (const RankLevel& it : levels) group.levels.push_back(it.size);
      const auto size = static_cast<std::uint32_t>(group.ranks.size());
      for (std::uint32_t i = 0; i < (plays_one_ ? 1 : size); ++i) {
        const std::uint32_t member = group.ranks[i];
        group.buffers.push_back(of_rank(moved, member));
        if (passes) group.into.push_back(of_rank(made, member));
        auto& waits = group.before.emplace_back();
        for (const StepId on : before) waits.push_back(step(on, member));
        for (const auto& held : {group.buffers.back(), of_rank(made, member)})
          for (const BufferId id : held)
            waits.insert(waits.end(), open_[index(id)].begin(), open_[index(id)].end());
      }
      const auto ends = plays_one_ ? add_rounds_of_one(group, collective.kind)
                                   : add_rounds_of_all(group, collective.kind);
      for (std::uint32_t i = 0; i < ends.size(); ++i)
        for (const auto* held : {&moved, &made})
          if (!passes || held == &made)  // what is passed on can be read meanwhile
            for (const BufferId id : of_rank(*held, group.ranks[i])) open_[index(id)] = ends[i];
    }
  }

  /// In SpreadPlan::forms.
  std::uint32_t form_of(const Collective& collective, MemoryId where, Bytes bytes) {
    // What is passed on goes round, whatever reduces.
    const bool goes_round = is_pass(collective.kind) && spreading_.algorithm == AllReduce::tree;
    if (spreading_.chosen_on == nullptr && !goes_round) return 0;
    const CollectiveForm form =
        goes_round ? CollectiveForm{} : choice_.of(collective, memory_[index(where)], bytes);
    auto& forms = result_.forms;
    const auto known = std::ranges::find(forms, form);
    const auto place = static_cast<std::uint32_t>(known - forms.begin());
    if (known == forms.end()) forms.push_back(form);
    return place;
  }

  std::vector<CollectiveSend> sends_of_member(const Group& group, CollectiveKind kind,
                                              std::uint32_t member) const {
    auto sends = sends_of(kind, result_.forms[group.form].algorithm, group.levels, member);
    for (CollectiveSend& send : sends) {
      send.part.first += group.share.number * send.part.of;
      send.part.of *= group.share.of;
      send.part.op = group.op;
      send.part.collective = group.number;
    }
    return sends;
  }

  /// Rounds that differ in nothing but in which part they move are one.
  std::vector<CollectiveSend> joined(std::vector<CollectiveSend> sends) const {
    if (!spreading_.joins_rounds) return sends;
    std::vector<CollectiveSend> joined;
    for (const CollectiveSend& send : sends) {
      const bool goes_on = !joined.empty() && joined.back().to == send.to &&
                           joined.back().from == send.from &&
                           joined.back().part.count == send.part.count && send.part.opens == 0;
      if (goes_on)
        ++joined.back().part.rounds;
      else
        joined.push_back(send);
    }
    return joined;
  }

  StepId add_round(const Lane& way, std::span<const BufferId> buffers, const Reduction& part,
                   std::span<const StepId> waits) {
    Step it{.kind = StepKind::reduce, .lane = lane(way)};
    it.reduction = static_cast<std::uint32_t>(result_.plan.reductions.size());
    result_.plan.reductions.push_back(part);
    it.reads = add_list(buffers);
    it.writes = add_list({});
    std::vector<Dependency> after;
    for (const StepId on : waits) after.push_back({on, Dependency::Edge::after_end});
    const StepId id = push(it, after);
    for (const BufferId buffer : buffers) rounds_[index(buffer)].push_back(id);
    return id;
  }

  std::vector<std::vector<StepId>> add_rounds_of_one(const Group& group, CollectiveKind kind) {
    std::vector<StepId> waits = group.before.front();
    for (const CollectiveSend& send : joined(sends_of_member(group, kind, 0))) {
      const Lane way{Lane::Kind::channel,
                     {},
                     0,
                     group.memory,
                     memory(group.memory, group.ranks[send.to]),
                     memory(group.memory, group.ranks[send.from])};
      note_way(group.memory, group.memory, group.ranks[send.to], group.form);
      const auto& changed = group.into.empty() ? group.buffers : group.into;
      waits = {add_round(way, changed.front(), send.part, waits)};
      if (!group.into.empty())
        for (const BufferId sent : group.buffers.front())
          rounds_[index(sent)].push_back(waits.front());
    }
    return {waits};
  }

  /// Whom the first of a group sends to in a round, and from whom it receives, in ranks after it.
  using RankTurn = std::pair<std::uint32_t, std::uint32_t>;

  static RankTurn turn_of(const Group& group, const CollectiveSend& of_first) {
    const auto after_first = [&](std::uint32_t member) {
      return group.ranks[member] - group.ranks.front();
    };
    return {after_first(of_first.to), after_first(of_first.from)};
  }

  /// Where every member sends to the one after it, and in another collective pairs exchange, then some
  /// send the same way in both and others do not. So that none of them waits where others go on, each
  /// turn has a stream of its own on a channel.
  std::uint32_t stream_of(std::pair<MemoryId, MemoryId> channel, const RankTurn& turn) {
    auto& turns = turns_[channel];
    const auto known = std::ranges::find(turns, turn);
    const auto stream = static_cast<std::uint32_t>(known - turns.begin());
    if (known == turns.end()) turns.push_back(turn);
    return stream;
  }

  std::vector<std::vector<StepId>> add_rounds_of_all(const Group& group, CollectiveKind kind) {
    const auto n = static_cast<std::uint32_t>(group.ranks.size());
    std::vector<std::vector<CollectiveSend>> sends;
    for (std::uint32_t i = 0; i < n; ++i) sends.push_back(sends_of_member(group, kind, i));
    std::vector<StepId> before(n), now(n), waits;
    for (std::size_t round = 0; round < sends.front().size(); ++round) {
      const RankTurn turn = turn_of(group, sends.front()[round]);
      for (std::uint32_t i = 0; i < n; ++i) {
        const CollectiveSend& send = sends[i][round];
        if (round == 0) {
          waits = group.before[i];
          waits.insert(waits.end(), group.before[send.to].begin(), group.before[send.to].end());
        } else {
          waits = {before[i], before[sends[i][round - 1].from],
                   before[sends[send.to][round - 1].from]};
        }
        const MemoryId from = memory(group.memory, group.ranks[i]);
        const MemoryId to = memory(group.memory, group.ranks[send.to]);
        const Lane way{Lane::Kind::channel, {}, stream_of({from, to}, turn), from, to, {}};
        std::vector<BufferId> buffers = group.buffers[i];
        const auto& changed = (group.into.empty() ? group.buffers : group.into)[send.to];
        buffers.insert(buffers.end(), changed.begin(), changed.end());
        now[i] = add_round(way, buffers, send.part, waits);
      }
      before = now;
    }
    std::vector<std::vector<StepId>> ends;
    for (std::uint32_t i = 0; i < n; ++i) ends.push_back({before[i], before[sends[i].back().from]});
    return ends;
  }

  /// Steps that the plan has in one stream may be in two.
  void add_users_since(std::uint32_t from, BufferId id) {
    auto& steps = result_.plan.release_steps;
    const std::vector<StepId>& users = users_[index(id)];
    steps.insert(steps.end(), users.begin(), users.end());
    const auto begin = steps.begin() + from;
    std::sort(begin, steps.end());
    steps.erase(std::unique(begin, steps.end()), steps.end());
  }

  void add_releases() {
    Plan& plan = result_.plan;
    for (std::uint32_t rank = 0; rank < played_; ++rank)
      for (const Release& release : plan_.releases) {
        const BufferId id = buffer(release.buffer, rank);
        if (has_homes() && is_room_for_gradient(id)) continue;
        const auto from = static_cast<std::uint32_t>(plan.release_steps.size());
        for (const StepId on : plan_.after(release)) plan.release_steps.push_back(step(on, rank));
        plan.release_steps.insert(plan.release_steps.end(), rounds_[index(id)].begin(),
                                  rounds_[index(id)].end());
        if (has_homes()) add_users_since(from, id);
        plan.releases.push_back(
            {id, {from, static_cast<std::uint32_t>(plan.release_steps.size())}});
      }
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Spreading& spreading_;
  const bool plays_one_;
  const std::uint32_t ranks_, played_;
  const std::vector<GradientBucket> buckets_;
  CollectiveChoice choice_;
  std::uint32_t own_collectives_ = 0;  ///< of the plan of one rank
  std::uint32_t collectives_ = 0;      ///< so far
  SpreadPlan result_;
  std::vector<std::vector<MemoryId>> memory_;  ///< by memory of the first rank, and rank
  std::vector<std::uint32_t> device_;          ///< by memory: of the first rank, or kNone
  using LaneKey = std::tuple<Lane::Kind, ProcessorId, std::uint32_t, MemoryId, MemoryId, MemoryId>;
  std::map<LaneKey, LaneId> lane_of_;  ///< an image that is its own memory: none
  std::vector<LaneId> lanes_;          ///< by rank and lane of the plan
  /// By channel between ranks that are all played: what each of its streams is for.
  std::map<std::pair<MemoryId, MemoryId>, std::vector<RankTurn>> turns_;
  std::vector<StepId> steps_;  ///< by step of the plan and rank
  struct Scratch {
    std::vector<BufferId> reads, writes;
    std::vector<Dependency> after;
  };
  Scratch scratch_;                          ///< of the step that is added
  std::vector<std::vector<StepId>> open_;    ///< by buffer: the ends of its last collective
  std::vector<std::vector<StepId>> rounds_;  ///< by buffer: moves that use it
  /// By buffer, where state lives elsewhere: the last of its users in each lane.
  std::vector<std::vector<StepId>> users_;
  /// Of a rank's processor, where state lives elsewhere.
  struct Begun {
    std::vector<StepId> gradients;  ///< moves of them
    bool updates = false;
  };
  std::vector<Begun> begun_;  ///< by processor of the first rank, and rank
  std::map<ProcessorId, std::vector<Time>> update_times_;  ///< by operator
};

}  // namespace

std::uint32_t Spreading::ranks() const {
  std::uint32_t ranks = 1;
  for (const RankAxis& axis : axes) ranks *= axis.size;
  return ranks;
}

bool Spreading::has_copies() const {
  return std::ranges::any_of(
      axes, [](const RankAxis& it) { return it.axis == MeshAxis::replica && it.size > 1; });
}

TensorList moved_by(const Operator& collective) {
  switch (collective.collective.kind) {
    case CollectiveKind::all_reduce:
      return collective.updates;
    case CollectiveKind::all_gather:
      return collective.kept;
    default:
      return collective.reads;
  }
}

SpreadPlan spread(const Plan& plan, const Workload& workload, const Platform& platform,
                  const Spreading& spreading, bool plays_one) {
  return Spreader(plan, workload, platform, spreading, plays_one).run();
}

}  // namespace plimsoll
