#include "scenario/run/plan_of_mesh.hpp"

#include "base/dense_id.hpp"
#include "policy/parallel/mesh_options.hpp"

#include <algorithm>
#include <compare>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {

namespace {

class PlanOfMesh {
 public:
  PlanOfMesh(const Plan& plan, const Workload& workload, const Platform& platform,
             const Spreading& mesh)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        mesh_(mesh),
        rank_in_(platform.memories.size()),
        alike_(levels_of_alike(mesh, false)),
        alike_of_experts_(levels_of_alike(mesh, true)) {
    for (std::size_t stage = 0; stage < mesh.likes.size(); ++stage)
      for (std::uint32_t r = 0; r < mesh.likes[stage].size(); ++r) {
        const ProcessorId device = mesh.likes[stage][r];
        rank_in_[index(platform[device].memory)] = Rank{device, stage, r};
      }
  }

  [[nodiscard]] std::string run() const {
    for (const auto check :
         {&PlanOfMesh::mirror, &PlanOfMesh::unequal_work, &PlanOfMesh::reduction})
      if (std::string why = (this->*check)(); !why.empty()) return why;
    return {};
  }

 private:
  struct Rank {
    ProcessorId device{};
    std::size_t stage = 0;
    std::uint32_t number = 0;
  };
  using Found = std::optional<Rank>;

  [[nodiscard]] const Found& rank_of(ProcessorId device) const {
    return rank_in_[index(platform_[device].memory)];
  }
  [[nodiscard]] const std::string& name(ProcessorId device) const { return platform_[device].name; }

  [[nodiscard]] std::string mirror() const {
    for (const Mirror& it : plan_.mirrors) {
      const Found &of = rank_of(it.processor), &like = rank_of(it.like);
      if (of && like && of->stage != like->stage)
        return fmt::format("`{}` does what `{}` does, a rank of another stage of the pipeline",
                           name(it.processor), name(it.like));
    }
    return {};
  }

  /// An operator that a rank of a stage runs and another one does not.
  [[nodiscard]] std::string unequal_work() const {
    std::vector<bool> is_played(platform_.processors.size(), true);
    for (const Mirror& it : plan_.mirrors) is_played[index(it.processor)] = false;
    const auto runs = operators_run();
    for (auto begin = runs.begin(); begin != runs.end();) {
      const auto end = std::find_if(begin, runs.end(), [&](const Run& it) {
        return it.stage != begin->stage || it.op != begin->op;
      });
      auto next = begin;
      const auto& likes = mesh_.likes[begin->stage];
      for (std::uint32_t r = 0; r < likes.size(); ++r) {
        if (next != end && next->rank == r)
          ++next;
        else if (is_played[index(likes[r])])
          return fmt::format("rank `{}` runs `{}`, and `{}` does not", name(likes[begin->rank]),
                             workload_[begin->op].name, name(likes[r]));
      }
      begin = end;
    }
    return {};
  }

  struct Run {
    std::size_t stage = 0;
    OperatorId op{};
    std::uint32_t rank = 0;
    auto operator<=>(const Run&) const = default;
  };

  /// On ranks: sorted, each once.
  [[nodiscard]] std::vector<Run> operators_run() const {
    std::vector<Run> runs;
    for (const Step& step : plan_.steps) {
      if (is_move(step.kind)) continue;
      const Found& rank = rank_of(plan_[step.lane].processor);
      if (!rank || rank->device != plan_[step.lane].processor) continue;
      runs.push_back({rank->stage, step.op, rank->number});
      if (step.kind == StepKind::pair) runs.push_back({rank->stage, step.second, rank->number});
    }
    std::ranges::sort(runs);
    const auto rest = std::ranges::unique(runs);
    runs.erase(rest.begin(), rest.end());
    return runs;
  }

  [[nodiscard]] std::string reduction() const {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::reduce) continue;
      const Lane& lane = plan_[step.lane];
      std::string why = between(step, lane.from, lane.to);
      if (why.empty() && lane.image) why = between(step, lane.image->from, lane.image->to);
      if (!why.empty())
        return fmt::format("step {}, {}, {}", s, describe(plan_, StepId{s}, workload_, platform_),
                           why);
    }
    return {};
  }

  [[nodiscard]] std::string between(const Step& step, MemoryId from, MemoryId to) const {
    const Found &a = rank_in_[index(from)], &b = rank_in_[index(to)];
    if (!a || !b || a->stage != b->stage) return {};
    const Reduction& reduction = plan_.reductions[step.reduction];
    if (reduction.op == kNoOperator)
      return reduction.adds ? of_gradients(step, *a, *b) : std::string();
    const Operator& op = workload_[reduction.op];
    const CollectiveKind kind = op.collective.kind;
    if (kind == CollectiveKind::none || moves_state(kind)) return {};
    if (are_together(*a, *b, levels_of(mesh_.axes, op.collective, {}))) return {};
    return fmt::format("is part of `{}`, and `{}` and `{}` are in different groups of the {} axis",
                       op.name, name(a->device), name(b->device), name_of(op.collective.axis));
  }

  /// In buckets.
  [[nodiscard]] std::string of_gradients(const Step& step, const Rank& a, const Rank& b) const {
    for (const BufferId buffer : moved_buffers(plan_, step)) {
      const Tensor& tensor = workload_[plan_[buffer].tensor];
      if (tensor.tensor_class != TensorClass::gradient || tensor.is_partial) continue;
      if (!are_together(a, b, tensor.is_of_experts ? alike_of_experts_ : alike_))
        return fmt::format("adds up `{}` of `{}` and `{}`, which have other parameters",
                           tensor.name, name(a.device), name(b.device));
    }
    return {};
  }

  /// Along which ranks differ that have the same parameters.
  [[nodiscard]] static std::vector<RankLevel> levels_of_alike(const Spreading& mesh,
                                                              bool of_experts) {
    const auto along = [&](MeshAxis axis) {
      return levels_of(mesh.axes, {CollectiveKind::all_reduce, axis, of_experts}, {});
    };
    std::vector<RankLevel> levels = along(MeshAxis::data);
    for (const RankLevel& level : along(MeshAxis::replica)) levels.push_back(level);
    return levels;
  }

  /// Whether they are of one group, whose members differ in these digits.
  [[nodiscard]] static bool are_together(const Rank& a, const Rank& b,
                                         std::span<const RankLevel> levels) {
    const auto first_of = [&](const Rank& rank) {
      std::uint32_t first = rank.number;
      for (const RankLevel& it : levels) first -= it.place_of(rank.number) * it.stride;
      return first;
    };
    return first_of(a) == first_of(b);
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Spreading& mesh_;
  std::vector<Found> rank_in_;  ///< by memory
  const std::vector<RankLevel> alike_, alike_of_experts_;
};

}  // namespace

std::string why_not_of_mesh(const Plan& plan, const Workload& workload, const Platform& platform,
                            const Spreading& mesh) {
  return PlanOfMesh(plan, workload, platform, mesh).run();
}

}  // namespace plimsoll
