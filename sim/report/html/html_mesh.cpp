#include "report/html/html_mesh.hpp"

#include "base/dense_id.hpp"
#include "platform/core/machines.hpp"
#include "platform/core/topology.hpp"
#include "report/run/mesh_words.hpp"
#include "report/text/style.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// So many kinds of machines are drawn, and GPUs of each.
constexpr std::size_t kMostMachines = 64, kMostGpus = 64;

struct MeshAxisOfRun {
  MeshOptions::Axis axis;
  std::int64_t size, stride;

  [[nodiscard]] const char* name() const { return name_of(axis); }

  [[nodiscard]] std::int64_t of(std::size_t rank) const {
    return static_cast<std::int64_t>(rank) / stride % size;
  }
};

/// The coordinates of a rank and its likes, by axis.
using Spans = std::vector<std::set<std::int64_t>>;

constexpr std::size_t kMostListed = 4;  ///< coordinates one by one

/// "3"; "0 to 3"; "0, 8, 16, 24"; "0 to 56 in steps of 8"; "0, 1, 4, 5 and 12 more".
std::string words_of(const std::set<std::int64_t>& span) {
  const std::vector<std::int64_t> all(span.begin(), span.end());
  if (all.size() == 1) return std::to_string(all.front());
  const std::int64_t step = all[1] - all[0];
  bool is_even = true;
  for (std::size_t i = 2; i < all.size(); ++i) is_even = is_even && all[i] - all[i - 1] == step;
  if (is_even && step == 1) return fmt::format("{} to {}", all.front(), all.back());
  if (is_even && all.size() > kMostListed)
    return fmt::format("{} to {} in steps of {}", all.front(), all.back(), step);
  const std::size_t listed = std::min(all.size(), kMostListed);
  const std::string text = fmt::format("{}", fmt::join(std::span(all).first(listed), ", "));
  return all.size() == listed ? text : fmt::format("{} and {} more", text, all.size() - listed);
}

class MeshPicture {
 public:
  MeshPicture(const Scenario& scenario, const RunResult& run)
      : platform_(scenario.platform), run_(run), topology_(scenario.platform) {
    const MeshOptions& parallel = *scenario.parallel;
    for (const NamedAxis& axis : kNamedAxes)
      if (const std::int64_t size = parallel.size(axis.axis); size > 1)
        axes_.push_back({axis.axis, size, parallel.stride(axis.axis)});
    std::vector<ProcessorId> others;
    if (scenario.state) others = updaters_of(*scenario.state, platform_);
    devices_ = mesh_devices(platform_, parallel, others);
    find_machines();
  }

  HtmlMesh draw() {
    HtmlMesh mesh;
    mesh.heading = "The mesh on the machine: " + label_of(run_);
    const std::vector<Kind> kinds = kinds_of_machines();
    const std::size_t coloured = coloured_axis(kinds);
    if (coloured < axes_.size()) mesh.coloured = axes_[coloured].name();
    for (std::size_t k = 0; k < std::min(kinds.size(), kMostMachines); ++k)
      mesh.machines.push_back(machine_of(kinds[k], coloured));
    for (const MeshAxisOfRun& axis : axes_) mesh.axes.push_back(exchanged_on(axis));
    mesh.note = fmt::format(
        "{} ranks on {}. Machines that do the same are drawn once; the bar of a GPU is its memory "
        "at the "
        "peak, and hovering it, or Tab, tells more.{}",
        thousands(static_cast<std::int64_t>(devices_.size())),
        machines_.size() == 1
            ? std::string("1 machine")
            : thousands(static_cast<std::int64_t>(machines_.size())) + " machines",
        kinds.size() > kMostMachines
            ? fmt::format(" Of {} kinds of machines the first {} are drawn.", kinds.size(),
                          kMostMachines)
            : "");
    if (run_.mesh && run_.mesh->stage > 0) {
      const std::string words = sharding_words(*run_.mesh);
      mesh.note += fmt::format(" S{}.", words.substr(1));
    }
    return mesh;
  }

 private:
  /// Machines that are alike, as ranks of the first, and what coordinates each rank's likes have.
  struct Kind {
    std::vector<std::size_t> ranks;
    std::int64_t count = 0;
    std::vector<Spans> spans;  ///< by place in `ranks`
  };

  void find_machines() {
    machine_ = machines_of(platform_, devices_);
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      if (machine_[rank] == machines_.size()) machines_.emplace_back();
      machines_[machine_[rank]].push_back(rank);
    }
  }

  [[nodiscard]] const MemoryMetrics* memory_of(std::size_t rank) const {
    const std::string& name = platform_[platform_[devices_[rank]].memory].name;
    if (memory_.empty())
      for (const MemoryMetrics& memory : run_.metrics.memories) memory_[memory.name] = &memory;
    const auto found = memory_.find(name);
    return found == memory_.end() ? nullptr : found->second;
  }

  /// What two machines have in common that are drawn once.
  [[nodiscard]] std::string form_of(const std::vector<std::size_t>& ranks) const {
    std::string form;
    for (const std::size_t rank : ranks) {
      for (const MeshAxisOfRun& axis : axes_)
        form += fmt::format("{},", axis.of(rank) - axis.of(ranks.front()));
      const MemoryMetrics* memory = memory_of(rank);
      form += fmt::format("{};", memory == nullptr ? 0 : memory->peak_requested.count());
    }
    return form;
  }

  std::vector<Kind> kinds_of_machines() const {
    std::vector<Kind> kinds;
    std::map<std::string, std::size_t> kind_of;
    for (const std::vector<std::size_t>& ranks : machines_) {
      const auto [found, is_new] = kind_of.try_emplace(form_of(ranks), kinds.size());
      if (is_new) kinds.push_back({ranks, 0, std::vector<Spans>(ranks.size())});
      Kind& kind = kinds[found->second];
      ++kind.count;
      for (std::size_t g = 0; g < ranks.size(); ++g)
        for (std::size_t a = 0; a < axes_.size(); ++a) {
          const std::int64_t at = axes_[a].of(ranks[g]);
          if (is_new) kind.spans[g].emplace_back();
          kind.spans[g][a].insert(at);
        }
    }
    return kinds;
  }

  [[nodiscard]] bool varies_in(const Kind& kind, std::size_t axis) const {
    return std::ranges::any_of(kind.ranks, [&](std::size_t rank) {
      return axes_[axis].of(rank) != axes_[axis].of(kind.ranks.front());
    });
  }

  /// The outermost that varies within a machine, else the outermost of all.
  [[nodiscard]] std::size_t coloured_axis(const std::vector<Kind>& kinds) const {
    for (std::size_t a = axes_.size(); a-- > 0;)
      if (std::ranges::any_of(kinds, [&](const Kind& kind) { return varies_in(kind, a); }))
        return a;
    return axes_.empty() ? 0 : axes_.size() - 1;
  }

  HtmlMesh::Machine machine_of(const Kind& kind, std::size_t coloured) const {
    HtmlMesh::Machine machine;
    machine.count = kind.count;
    std::vector<std::string> fixed;
    for (std::size_t a = 0; a < axes_.size(); ++a)
      if (!varies_in(kind, a))
        fixed.push_back(fmt::format("{} {}", axes_[a].name(), words_of(kind.spans.front()[a])));
    machine.title = fmt::format("{}", fmt::join(fixed, ", "));
    for (std::size_t g = 0; g < std::min(kind.ranks.size(), kMostGpus); ++g)
      machine.gpus.push_back(gpu_of(kind, g, coloured));
    return machine;
  }

  HtmlMesh::Gpu gpu_of(const Kind& kind, std::size_t g, std::size_t coloured) const {
    const std::size_t rank = kind.ranks[g];
    HtmlMesh::Gpu gpu;
    gpu.name = platform_[devices_[rank]].name;
    std::vector<std::string> places;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      places.push_back(fmt::format("{} {}", axes_[a].name(), words_of(kind.spans[g][a])));
      if (varies_in(kind, a))
        gpu.label += fmt::format("{}{}{}", gpu.label.empty() ? "" : " ", axes_[a].name()[0],
                                 axes_[a].of(rank));
    }
    gpu.words = fmt::format("{}{}: {}", gpu.name,
                            kind.count > 1 ? fmt::format(" and {} alike", kind.count - 1) : "",
                            fmt::join(places, ", "));
    if (coloured < axes_.size()) gpu.colour = static_cast<std::size_t>(axes_[coloured].of(rank));
    if (const MemoryMetrics* memory = memory_of(rank)) {
      gpu.words += fmt::format("; {} peaks at {}", memory->name, to_text(memory->peak_requested));
      if (memory->usable) {
        gpu.use = static_cast<double>(memory->peak_requested.count()) /
                  static_cast<double>(memory->usable->count());
        gpu.words += fmt::format(" of {} ({})", to_text(*memory->usable), percent(*gpu.use));
      }
    }
    return gpu;
  }

  HtmlMesh::Axis exchanged_on(const MeshAxisOfRun& axis) const {
    HtmlMesh::Axis it{.name = axis.name(), .size = axis.size};
    for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
      if (axis.of(rank) + 1 == axis.size) continue;
      const std::size_t next = rank + static_cast<std::size_t>(axis.stride);
      std::string& way = machine_[rank] == machine_[next] ? it.inside : it.across;
      if (way.empty()) way = way_between(rank, next);
    }
    it.carries = carried_on(axis.axis);
    return it;
  }

  std::string way_between(std::size_t from, std::size_t to) const {
    const Route* route =
        topology_.route(platform_[devices_[from]].memory, platform_[devices_[to]].memory);
    if (route == nullptr) return "no links";
    std::vector<std::string> links;
    for (const Hop& hop : route->hops) {
      const std::string& name = platform_[hop.link].name;
      std::string kind = name.substr(0, name.find_last_not_of("0123456789") + 1);
      if (kind.empty()) kind = name;
      if (std::ranges::count(links, kind) == 0) links.push_back(std::move(kind));
    }
    return fmt::format("{}, {}", fmt::join(links, ", "), to_text(route->bandwidth));
  }

  /// Of the results' collectives, which do not say along which axis: gradients and parameters go along all
  /// on which ranks hold the same. Each is counted on the first of its axes.
  std::string carried_on(MeshOptions::Axis axis) const {
    if (axis == MeshOptions::Axis::pipeline) return messages();
    std::vector<std::string> carried;
    for (const CollectiveMetrics& it : run_.metrics.collectives) {
      const std::vector<MeshOptions::Axis> along = axes_of(it.name);
      if (std::ranges::count(along, axis) == 0) continue;
      if (along.front() != axis)
        carried.push_back(fmt::format("{}, as told of {}", it.name, name_of(along.front())));
      else
        carried.push_back(
            fmt::format("{} {}{}, {} exposed of {}", it.name, to_text(it.bytes),
                        along.size() > 1 ? fmt::format(" over {}", in_words(along)) : "",
                        to_text(it.exposed), to_text(it.busy)));
    }
    return carried.empty() ? "nothing" : fmt::format("{}", fmt::join(carried, "; "));
  }

  /// Of more than one rank, on which a collective goes or may go.
  [[nodiscard]] std::vector<MeshOptions::Axis> axes_of(const std::string& collective) const {
    static const std::map<std::string, std::vector<MeshOptions::Axis>> kAxes{
        {"activations", {MeshOptions::Axis::tensor}},
        {"blocks", {MeshOptions::Axis::context}},
        {"experts", {MeshOptions::Axis::expert}},
        {"gradients",
         {MeshOptions::Axis::context, MeshOptions::Axis::expert, MeshOptions::Axis::data}},
        {"parameters",
         {MeshOptions::Axis::context, MeshOptions::Axis::expert, MeshOptions::Axis::data}},
        {"directions",
         {MeshOptions::Axis::tensor, MeshOptions::Axis::context, MeshOptions::Axis::expert,
          MeshOptions::Axis::data}}};
    std::vector<MeshOptions::Axis> along;
    const auto found = kAxes.find(collective);
    if (found == kAxes.end()) return along;
    for (const MeshAxisOfRun& axis : axes_)
      if (std::ranges::count(found->second, axis.axis) > 0) along.push_back(axis.axis);
    return along;
  }

  /// "context, expert and data".
  static std::string in_words(std::span<const MeshOptions::Axis> axes) {
    std::vector<std::string> names;
    for (const MeshOptions::Axis axis : axes) names.emplace_back(name_of(axis));
    return fmt::format("{} and {}", fmt::join(std::span(names).first(names.size() - 1), ", "),
                       names.back());
  }

  /// What the rank sends that sends most to other stages.
  std::string messages() const {
    std::map<MemoryId, Bytes> sent;
    for (const ProcessorId device : devices_) sent[platform_[device].memory] = Bytes{};
    for (std::size_t s = 0; s < run_.plan.steps.size(); ++s) {
      const Step& step = run_.plan.steps[s];
      if (step.kind != StepKind::copy || run_.execution.end[s].is_unlimited()) continue;
      const Lane& lane = run_.plan[step.lane];
      if (!sent.contains(lane.from) || !sent.contains(lane.to)) continue;
      for (const BufferId written : run_.plan.list(step.writes))
        sent[lane.from] += run_.workload_as_run[run_.plan[written].tensor].bytes;
    }
    const auto most =
        std::ranges::max_element(sent, {}, [](const auto& of_memory) { return of_memory.second; });
    return fmt::format("messages between stages, {} from the rank that sends most",
                       to_text(most->second));
  }

  const Platform& platform_;
  const RunResult& run_;
  const Topology topology_;
  std::vector<MeshAxisOfRun> axes_;     ///< of more than one rank, as kNamedAxes has them
  std::vector<ProcessorId> devices_;    ///< by rank
  std::vector<std::uint32_t> machine_;  ///< by rank
  std::vector<std::vector<std::size_t>> machines_;  ///< their ranks
  mutable std::map<std::string, const MemoryMetrics*> memory_;
};

}  // namespace

std::optional<HtmlMesh> mesh_picture(const Scenario& scenario, const RunResult& run) {
  if (!scenario.parallel || scenario.parallel->product() == 1 || run.infeasible)
    return std::nullopt;
  return MeshPicture(scenario, run).draw();
}

}  // namespace plimsoll
