#include "base/dense_id.hpp"
#include "base/divisors.hpp"
#include "base/quantity_text.hpp"
#include "plan/build/collective_choice.hpp"
#include "plan/build/spread_plan.hpp"
#include "policy/claims/claims.hpp"
#include "policy/interface/entry.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "policy/parallel/named_copies.hpp"
#include "policy/parallel/rank_symmetry.hpp"
#include "policy/pipeline/schedule/replica_symmetry.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// "data 4 x tensor 2 = 8"; "no axis is named".
std::string product_text(const MeshOptions& parallel) {
  std::string text;
  for (const NamedAxis& it : kNamedAxes)
    if (const auto& size = parallel.*it.size)
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", it.name, size->value);
  return text.empty() ? "no axis is named" : fmt::format("{} = {}", text, parallel.product());
}

std::vector<ProcessorId> processors_named(const Platform& platform,
                                          const Located<std::string>& name) {
  Diagnostics diagnostics;
  check_name(name, platform.processors, "processor", platform, diagnostics);
  diagnostics.throw_if_errors();
  return copies_named<ProcessorId>(platform.processors, name.value);
}

/// "gpu", where the platform has so many of gpu0, gpu1, ..; or "".
std::string name_of_copies(const Platform& platform, std::int64_t count) {
  std::map<std::string_view, std::int64_t> copies;
  for (const Processor& processor : platform.processors) ++copies[without_number(processor.name)];
  for (const auto& [name, its] : copies)
    if (its == count && platform.processors.size() > copies.size()) return std::string(name);
  return "";
}

std::string hint_of_count(const Platform& platform, const MeshOptions& parallel, std::int64_t ranks,
                          std::int64_t there) {
  if (ranks > there || parallel.devices) return "expected sizes whose product is that number";
  const std::string name = name_of_copies(platform, ranks);
  if (name.empty()) return "`devices` may name those that are used";
  return fmt::format("`devices: [{}]` names {} of them", name, ranks);
}

void check_count(const Platform& platform, const MeshOptions& parallel, std::size_t devices) {
  const std::int64_t ranks = parallel.product();
  const auto there = static_cast<std::int64_t>(devices);
  if (ranks == there) return;
  const std::string found = parallel.devices
                                ? fmt::format("`devices` names {}", devices)
                                : fmt::format("platform `{}` has {}", platform.name, devices);
  refuse(parallel.where,
         fmt::format("the mesh has {} rank{} ({}), and {} processor{}", ranks,
                     ranks == 1 ? "" : "s", product_text(parallel), found, devices == 1 ? "" : "s"),
         hint_of_count(platform, parallel, ranks, there));
}

void check_memories(const Platform& platform, const MeshOptions& parallel,
                    const std::vector<ProcessorId>& devices) {
  std::vector<ProcessorId> owner(platform.memories.size(), ProcessorId{kNone});
  for (const ProcessorId device : devices) {
    ProcessorId& of = owner[index(platform[device].memory)];
    if (of != ProcessorId{kNone})
      refuse(parallel.where,
             fmt::format("`{}` and `{}` share a memory; each rank needs one of its own",
                         platform[of].name, platform[device].name));
    of = device;
  }
}

void check_tree(const Spreading& spreading, const MeshOptions& parallel) {
  for (const RankAxis& axis : spreading.axes)
    if (spreading.algorithm == AllReduce::tree && !std::has_single_bit(axis.size))
      refuse(parallel.where,
             fmt::format("a tree halves what it reduces until one part is left, so an "
                         "axis takes 2, 4, 8, .. ranks; found {}",
                         axis.size));
}

/// Every channel of the plan has a way.
void require_routes(const Plan& plan, const Problem& problem, const MeshOptions& parallel) {
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::channel && problem.topology.route(lane.from, lane.to) == nullptr)
      refuse_missing_way(parallel.where, problem.platform[lane.from].name,
                         problem.platform[lane.to].name);
}

/// Rings that are told of where another form takes so many times less.
constexpr double kSlowRing = 1.5;

/// A bucket, or all gradients where they are less.
Bytes full_bucket(const Workload& workload) {
  Bytes gradients;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == TensorClass::gradient && tensor.lifetime != Lifetime::step)
      gradients += tensor.bytes;
  return std::min(gradients, kBucket);
}

/// "the ring of the data axis takes", "rings of the expert, data axes take": those that hold the same parameters.
std::string rings_take(const MeshOptions& parallel) {
  using Axis = MeshOptions::Axis;
  std::vector<const char*> axes;
  for (const Axis axis : {Axis::context, Axis::expert, Axis::data})
    if (parallel.size(axis) > 1) axes.push_back(name_of(axis));
  return axes.size() == 1 ? fmt::format("the ring of the {} axis takes", axes.front())
                          : fmt::format("rings of the {} axes take", fmt::join(axes, ", "));
}

/// Empty, or how much less a collective of one bucket over the data axis would take in the form of least time:
/// a ring through machines of several ranks uses one way of each machine.
std::string note_on_rings(const Problem& problem, const MeshOptions& parallel,
                          Spreading spreading) {
  const Bytes bytes = full_bucket(problem.workload);
  if (parallel.collectives != MeshOptions::Algorithm::ring || bytes == Bytes{}) return {};
  const bool is_by_unit = spreading.of_gradients == CollectiveKind::none;
  const Collective along{is_by_unit ? CollectiveKind::reduce_scatter : spreading.of_gradients,
                         MeshAxis::data};
  const std::vector<MemoryId> memories = memories_of(spreading.likes.front(), problem.platform);
  spreading.chosen_on = &problem.topology;
  CollectiveChoice choice(spreading, problem.platform);
  const CollectiveForm best = choice.of(along, memories, bytes);
  const auto ring = choice.time_of({}, along, memories, bytes);
  const auto least = choice.time_of(best, along, memories, bytes);
  if (!ring || !least || *least == Time{}) return {};
  const double times = static_cast<double>(ring->count()) / static_cast<double>(least->count());
  if (times < kSlowRing) return {};
  return fmt::format(
      "{} {:.1f} times as long for {} as the form that `parallel.collectives: auto` takes",
      rings_take(parallel), times, to_text(bytes));
}

/// Whether one rank would stand for all if collectives took the form of least time.
bool is_alike_by_choice(const Plan& of_one, const Problem& problem, Spreading spreading) {
  spreading.chosen_on = &problem.topology;
  RankSymmetry unknown;
  SpreadPlan once = spread(of_one, problem.workload, problem.platform, problem.topology, spreading,
                           PlayedRanks::one(spreading.axes));
  return cannot_stand_for_all(once, problem, spreading, unknown).empty();
}

/// That the plan of all ranks is not too large to be made. `why` one cannot stand for all; empty: all are asked for.
void check_size(const Plan& once, const Plan& of_one, const Problem& problem,
                const MeshOptions& parallel, const Spreading& spreading, const std::string& why) {
  const std::uint64_t steps = steps_of_all(once, spreading.ranks());
  if (steps <= kMostSpreadSteps) return;
  std::string what = fmt::format(
      "the plan of all {} ranks would have {:.1f} million steps, and at most {} million are played",
      spreading.ranks() * spreading.likes.size(), static_cast<double>(steps) / 1e6,
      kMostSpreadSteps / 1'000'000);
  if (why.empty()) refuse(parallel.where, what, "without `play: all` one rank may stand for all");
  what += "; one rank cannot stand for all: " + why;
  if (spreading.chosen_on == nullptr && is_alike_by_choice(of_one, problem, spreading))
    refuse(parallel.where, what, "with `collectives: auto` one rank stands for all");
  refuse(parallel.where, what);
}

/// Plans of the ranks of a mesh, which do the same.
class RankPlans {
 public:
  RankPlans(const Plan& of_one, const Problem& problem, const MeshOptions& parallel,
            const Spreading& spreading, RankSymmetry& known)
      : of_one_(of_one),
        problem_(problem),
        parallel_(parallel),
        spreading_(spreading),
        known_(known) {
    if (parallel.collectives == MeshOptions::Algorithm::automatic)
      spreading_.chosen_on = &problem.topology;
  }

  /// Of as few as stand for all.
  Plan run() {
    using Play = MeshOptions::Play;
    SpreadPlan once = of(PlayedRanks::one(spreading_.axes));
    std::string why;
    if (parallel_.play.value != Play::all) {
      require_routes(once.plan, problem_, parallel_);
      why = cannot_stand_for_all(once, problem_, spreading_, known_);
      if (why.empty()) return std::move(once.plan);
      if (link_with_power(problem_.platform).empty())
        if (auto some = of_some(once.plan, why)) return std::move(*some);
      if (parallel_.play.value == Play::once)
        refuse(parallel_.play.where, "one rank cannot be played for all: " + why,
               "`play: all` plays every one");
    }
    check_size(once.plan, of_one_, problem_, parallel_, spreading_, why);
    once.plan = {};
    Plan all = of(PlayedRanks::all(spreading_.axes)).plan;
    require_routes(all, problem_, parallel_);
    if (!why.empty())
      all.notes.push_back(
          fmt::format("all {} ranks are played, as one cannot stand for all: {}", ranks(), why));
    return all;
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return spreading_.ranks() * spreading_.likes.size(); }

  SpreadPlan of(const PlayedRanks& ranks) {
    SpreadPlan plan =
        spread(of_one_, problem_.workload, problem_.platform, problem_.topology, spreading_, ranks);
    known_.taken = plan.taken;
    return plan;
  }

  /// Of several that stand for all, where one cannot.
  std::optional<Plan> of_some(const Plan& once, const std::string& why) {
    for (const PlayedRanks& ranks_played : played_by_machine(spreading_, problem_.platform)) {
      if (steps_of_all(once, ranks_played.count()) > kMostSpreadSteps) break;
      SpreadPlan some = of(ranks_played);
      if (!cannot_stand_for_all(some, problem_, spreading_, known_).empty()) continue;
      some.plan.notes.push_back(
          fmt::format("{} ranks are played for all {}, as one cannot stand for all: {}",
                      ranks_played.count() * spreading_.likes.size(), ranks(), why));
      return std::move(some.plan);
    }
    return std::nullopt;
  }

  const Plan& of_one_;
  const Problem& problem_;
  const MeshOptions& parallel_;
  Spreading spreading_;
  RankSymmetry& known_;
};

}  // namespace

std::vector<ProcessorId> mesh_devices(const Platform& platform, const MeshOptions& parallel,
                                      std::span<const ProcessorId> others) {
  std::vector<ProcessorId> devices;
  if (!parallel.devices) {
    for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
      if (std::ranges::count(others, ProcessorId{p}) == 0) devices.push_back(ProcessorId{p});
    return devices;
  }
  std::vector<bool> is_named(platform.processors.size());
  for (const Located<std::string>& named : *parallel.devices)
    for (const ProcessorId device : processors_named(platform, named)) {
      if (is_named[index(device)])
        refuse(named.where, fmt::format("`{}` is named twice", platform[device].name));
      is_named[index(device)] = true;
      devices.push_back(device);
    }
  return devices;
}

Spreading mesh_of(const Platform& platform, const MeshOptions& parallel,
                  std::span<const ProcessorId> others) {
  const std::vector<ProcessorId> devices = mesh_devices(platform, parallel, others);
  check_count(platform, parallel, devices.size());
  check_memories(platform, parallel, devices);
  Spreading spreading;
  using Algorithm = MeshOptions::Algorithm;
  if (parallel.collectives == Algorithm::tree) spreading.algorithm = AllReduce::tree;
  const auto size = [](const auto& axis) {
    return static_cast<std::uint32_t>(MeshOptions::size(axis));
  };
  spreading.axes = {{MeshAxis::tensor, size(parallel.tensor)},
                    {MeshAxis::context, size(parallel.context)},
                    {MeshAxis::expert, size(parallel.expert)},
                    {MeshAxis::data, size(parallel.data)}};
  if (parallel.collectives == Algorithm::hierarchical)
    spreading.axes.back().node = size(parallel.node);
  check_tree(spreading, parallel);
  using Axis = MeshOptions::Axis;
  std::vector<std::int64_t> places{0};
  for (const Axis axis : {Axis::tensor, Axis::context, Axis::expert, Axis::data}) {
    const std::vector<std::int64_t> inner = std::exchange(places, {});
    for (std::int64_t i = 0; i < parallel.size(axis); ++i)
      for (const std::int64_t place : inner) places.push_back(place + i * parallel.stride(axis));
  }
  for (std::int64_t p = 0; p < parallel.size(Axis::pipeline); ++p) {
    auto& likes = spreading.likes.emplace_back();
    for (const std::int64_t place : places)
      likes.push_back(
          devices[static_cast<std::size_t>(place + p * parallel.stride(Axis::pipeline))]);
  }
  return spreading;
}

void divide_into_groups(Spreading& spreading, const MeshOptions& parallel,
                        const Located<std::int64_t>& group) {
  RankAxis& within = spreading.axes.back();
  const std::int64_t data = within.size, node = within.node, size = group.value;
  if (data % size != 0)
    refuse(group.where,
           fmt::format("groups of {} ranks do not divide a data axis of {}", size, data),
           expected_divisor(data, size));
  if (node % size != 0 && size % node != 0)
    refuse(group.where,
           fmt::format("groups of {} ranks and nodes of {} on the data axis: neither divides the "
                       "other",
                       size, node),
           fmt::format("expected a divisor or a multiple of `node: {}`", parallel.node->value));
  const auto across = static_cast<std::uint32_t>(data / size);
  within.size = static_cast<std::uint32_t>(size);
  within.node = static_cast<std::uint32_t>(std::min(node, size));
  if (across == 1) return;
  spreading.axes.push_back({MeshAxis::replica, across,
                            static_cast<std::uint32_t>(std::max<std::int64_t>(node / size, 1))});
}

namespace {

Plan with_claims(Plan plan, const Plan& of_one, const Problem& problem) {
  plan.claims = claims_of(plan, problem);
  plan.claims.chosen = of_one.claims.chosen;
  plan.claims.left_out = of_one.claims.left_out;
  plan.claims.eviction = of_one.claims.eviction;
  plan.bounds = of_one.bounds;
  plan.bounds.energy.reset();
  return plan;
}

}  // namespace

Plan plan_of_ranks(const Plan& of_one, const Problem& problem, const MeshOptions& parallel,
                   const Spreading& spreading, RankSymmetry& known) {
  Plan plan = RankPlans(of_one, problem, parallel, spreading, known).run();
  if (!known.rings) known.rings = note_on_rings(problem, parallel, spreading);
  if (!known.rings->empty()) plan.notes.push_back(*known.rings);
  return with_claims(std::move(plan), of_one, problem);
}

Plan plan_of_ranks(const Plan& of_one, const Problem& problem, const MeshOptions& parallel,
                   const Spreading& spreading) {
  RankSymmetry known;
  return plan_of_ranks(of_one, problem, parallel, spreading, known);
}

Plan plan_of_one_rank(const Plan& plan, const Problem& problem, const Spreading& spreading) {
  return with_claims(spread(plan, problem.workload, problem.platform, problem.topology, spreading,
                            PlayedRanks::all(spreading.axes))
                         .plan,
                     plan, problem);
}

}  // namespace plimsoll
