#include "report/run/mesh_words.hpp"

#include "report/text/style.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// "the context axis and groups of 8 on the data axis": those of more than one rank.
std::string axes_in_words(const MeshOfRun& mesh, std::initializer_list<MeshOptions::Axis> among) {
  std::vector<std::string> names;
  for (const MeshOptions::Axis axis : among)
    if (axis == MeshOptions::Axis::data && mesh.group)
      names.push_back(fmt::format("groups of {} on the {} axis", *mesh.group, name_of(axis)));
    else if (mesh.size(axis) > 1)
      names.push_back(fmt::format("the {} axis", name_of(axis)));
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string axes_text(const MeshOfRun& mesh) {
  std::vector<std::string> parts;
  for (const MeshOfRun::Axis& axis : mesh.axes)
    if (axis.size > 1) parts.push_back(fmt::format("{} {}", name_of(axis.axis), axis.size));
  return fmt::format("{}", fmt::join(parts, " x "));
}

/// By axis: the forms that its collectives take.
std::string taken_text(const std::vector<MeshOfRun::Form>& taken) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_axis;
  for (const MeshOfRun::Form& form : taken) {
    const std::string axis = form.along == MeshAxis::replica
                                 ? "between groups"
                                 : fmt::format("{} axis", name_of(form.along));
    auto found = std::ranges::find(by_axis, axis, &decltype(by_axis)::value_type::first);
    if (found == by_axis.end()) found = by_axis.insert(by_axis.end(), {axis, {}});
    found->second.push_back(form_words(form));
  }
  std::vector<std::string> parts;
  for (const auto& [axis, forms] : by_axis)
    parts.push_back(fmt::format("{} in {}", axis, fmt::join(forms, " and in ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// By axis only where the forms differ; empty where they are not known.
std::string collectives_text(const MeshOfRun& mesh) {
  if (!mesh.taken) return "";
  if (mesh.taken->empty()) return "; no collectives";
  const std::string first = form_words(mesh.taken->front());
  const bool are_alike = std::ranges::all_of(
      *mesh.taken, [&](const MeshOfRun::Form& form) { return form_words(form) == first; });
  return fmt::format("; collectives{}{}",
                     mesh.collectives == MeshOptions::Algorithm::automatic ? " (auto)" : "",
                     are_alike ? " in " + first : ": " + taken_text(*mesh.taken));
}

}  // namespace

std::string form_words(const MeshOfRun::Form& form) {
  const char* name = form.algorithm == AllReduce::tree ? "trees" : "rings";
  if (form.node == 1) return name;
  const std::string axis = form.level_on == MeshAxis::replica
                               ? "groups"
                               : fmt::format("ranks of the {} axis", name_of(form.level_on));
  return fmt::format("{} within nodes of {} {} and between them", name, form.node, axis);
}

std::string sharding_words(const MeshOfRun& mesh) {
  if (mesh.stage == 0) return "no sharding";
  std::string text = fmt::format(
      "sharding stage {}: state in {} over {}", mesh.stage,
      counted(static_cast<std::size_t>(mesh.parts), "part"),
      axes_in_words(
          mesh, {MeshOptions::Axis::context, MeshOptions::Axis::expert, MeshOptions::Axis::data}));
  if (mesh.parts_of_experts == 1 && mesh.parts > 1)
    text += ", of experts whole";
  else if (mesh.parts_of_experts != mesh.parts)
    text += fmt::format(", of experts in {} over {}", mesh.parts_of_experts,
                        axes_in_words(mesh, {MeshOptions::Axis::context, MeshOptions::Axis::data}));
  if (mesh.copies > 1) text += fmt::format(", in {} copies", mesh.copies);
  return text;
}

std::string mesh_words(const MeshOfRun& mesh) {
  const std::string axes = axes_text(mesh);
  return fmt::format("{}{}{}; {}{}", counted(static_cast<std::size_t>(mesh.ranks()), "rank"),
                     axes.empty() ? "" : ": ", axes, sharding_words(mesh), collectives_text(mesh));
}

std::string use_of_ranks(const Metrics& metrics) {
  std::vector<std::string> parts;
  if (metrics.tokens_per_s)
    parts.push_back(
        fmt::format("{} tokens/s", thousands(static_cast<std::int64_t>(*metrics.tokens_per_s))));
  if (metrics.mfu)
    parts.push_back(fmt::format("MFU {}, HFU {}", percent(*metrics.mfu), percent(*metrics.hfu)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace plimsoll
