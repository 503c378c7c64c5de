#include "platform/platform_cluster.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using Name = Located<std::string>;

class Copier {
 public:
  Copier(const PlatformSpec& spec, Diagnostics& diagnostics)
      : spec_(spec), cluster_(*spec.cluster), diagnostics_(diagnostics) {}

  PlatformSpec copy_out();

 private:
  void find_copied();
  bool has_bounded_size();
  void copy_links();
  void join();
  void join_switch(const LinkSpec& link, const std::string& memory);
  void join_pair(const LinkSpec& link, const std::string& memory, std::int64_t i, std::int64_t j);
  std::string joined_memory(const LinkSpec& link);

  [[nodiscard]] bool is_copied(const std::string& memory) const { return copied_.contains(memory); }
  [[nodiscard]] Name of_copy(const Name& name, std::int64_t i) const {
    return {fmt::format("{}{}", name.value, i), name.where};
  }
  /// The end of a link of copy `i`.
  [[nodiscard]] Name end_of_copy(const Name& end, std::int64_t i) const {
    return is_copied(end.value) ? of_copy(end, i) : end;
  }

  const PlatformSpec& spec_;
  const ClusterSpec& cluster_;
  Diagnostics& diagnostics_;
  std::set<std::string> copied_;  ///< memories and switches of which each copy has its own
  PlatformSpec result_;
};

void Copier::find_copied() {
  std::vector<std::string> known;
  for (const auto& [name, memory] : spec_.memories) known.push_back(name.value);
  for (const Name& name : spec_.switches) known.push_back(name.value);
  copied_.insert(known.begin(), known.end());
  for (const Name& name : cluster_.shared) {
    if (copied_.erase(name.value) > 0) continue;
    if (std::ranges::count(known, name.value) > 0) {
      diagnostics_.error(name.where, fmt::format("`{}` is shared twice", name.value));
    } else {
      diagnostics_.error(name.where, fmt::format("there is no memory `{}` to share", name.value),
                         diagnostics_.is_full() ? "" : did_you_mean(name.value, known));
    }
  }
}

bool Copier::has_bounded_size() {
  const auto n = static_cast<std::size_t>(cluster_.count);
  const bool is_mesh = cluster_.topology == NamedTopology::mesh;
  const std::size_t made_links = is_mesh ? n * (n - 1) / 2 : n;
  const std::size_t memories = (spec_.memories.size() + spec_.switches.size()) * n;
  const std::size_t most =
      std::max({memories, spec_.processors.size() * n, spec_.links.size() * n + made_links});
  if (most <= kMaxParts) return true;
  diagnostics_.error(
      cluster_.where,
      fmt::format("this cluster makes {} parts of a kind, expected at most {}", most, kMaxParts));
  return false;
}

void Copier::copy_links() {
  for (const auto& [name, link] : spec_.links) {
    const bool copied = link && std::ranges::any_of(link->between, [&](const Name& end) {
                          return is_copied(end.value);
                        });
    if (!copied) {
      result_.links.emplace_back(name, link);
      continue;
    }
    for (std::int64_t i = 0; i < cluster_.count; ++i) {
      LinkSpec copy = *link;
      for (Name& end : copy.between) end = end_of_copy(end, i);
      result_.links.emplace_back(of_copy(name, i), std::move(copy));
    }
  }
}

/// The memory of each copy that the topology joins, or "" after reporting.
std::string Copier::joined_memory(const LinkSpec& link) {
  if (link.joins) {
    if (is_copied(link.joins->value)) return link.joins->value;
    diagnostics_.error(
        link.joins->where,
        fmt::format("`{}` is no memory of which each copy has its own", link.joins->value),
        did_you_mean(link.joins->value, {std::vector(copied_.begin(), copied_.end())}));
    return {};
  }
  std::set<std::string> memories;
  for (const auto& [name, processor] : spec_.processors) {
    if (processor && is_copied(processor->memory.value)) memories.insert(processor->memory.value);
  }
  if (memories.size() == 1) return *memories.begin();
  diagnostics_.error(link.where, "the cluster's link needs `joins`: which memory of each copy");
  return {};
}

void Copier::join_switch(const LinkSpec& link, const std::string& memory) {
  result_.switches.push_back(link.name);
  for (std::int64_t i = 0; i < cluster_.count; ++i) {
    LinkSpec copy = link;
    copy.between = {of_copy({memory, link.where}, i), link.name};
    result_.links.emplace_back(of_copy(link.name, i), std::move(copy));
  }
}

void Copier::join_pair(const LinkSpec& link, const std::string& memory, std::int64_t i,
                       std::int64_t j) {
  LinkSpec copy = link;
  copy.between = {of_copy({memory, link.where}, i), of_copy({memory, link.where}, j)};
  const Name name{fmt::format("{}{}-{}", link.name.value, i, j), link.name.where};
  result_.links.emplace_back(name, std::move(copy));
}

void Copier::join() {
  if (cluster_.topology.has_value() != cluster_.link.has_value()) {
    diagnostics_.error(cluster_.where, cluster_.link
                                           ? "the cluster has a `link` but no `topology`"
                                           : "the cluster has a `topology` but no `link`");
    return;
  }
  if (!cluster_.topology) return;
  const LinkSpec& link = *cluster_.link;
  const std::string memory = joined_memory(link);
  if (memory.empty()) return;
  const std::int64_t n = cluster_.count;
  switch (*cluster_.topology) {
    case NamedTopology::switched:
      return join_switch(link, memory);
    case NamedTopology::mesh:
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = i + 1; j < n; ++j) join_pair(link, memory, i, j);
      }
      return;
    case NamedTopology::chain:
    case NamedTopology::ring:
      for (std::int64_t i = 0; i + 1 < n; ++i) join_pair(link, memory, i, i + 1);
      if (*cluster_.topology == NamedTopology::chain) return;
      if (n > 2) return join_pair(link, memory, n - 1, 0);
      diagnostics_.error(cluster_.where, "a ring has at least 3 copies");
  }
}

PlatformSpec Copier::copy_out() {
  result_ = spec_;
  result_.cluster.reset();
  if (!has_bounded_size()) return result_;
  find_copied();
  result_.memories.clear();
  result_.switches.clear();
  result_.processors.clear();
  result_.links.clear();
  const auto times = [&](bool copied) { return copied ? cluster_.count : 1; };
  for (const auto& [name, memory] : spec_.memories) {
    const bool copied = is_copied(name.value);
    for (std::int64_t i = 0; i < times(copied); ++i) {
      result_.memories.emplace_back(copied ? of_copy(name, i) : name, memory);
    }
  }
  for (const Name& name : spec_.switches) {
    const bool copied = is_copied(name.value);
    for (std::int64_t i = 0; i < times(copied); ++i) {
      result_.switches.push_back(copied ? of_copy(name, i) : name);
    }
  }
  for (const auto& [name, processor] : spec_.processors) {
    const bool copied = processor && is_copied(processor->memory.value);
    for (std::int64_t i = 0; i < times(copied); ++i) {
      auto copy = processor;
      if (copied) copy->memory = of_copy(processor->memory, i);
      result_.processors.emplace_back(copied ? of_copy(name, i) : name, std::move(copy));
    }
  }
  copy_links();
  join();
  return std::move(result_);
}

}  // namespace

PlatformSpec copy_out(const PlatformSpec& spec, Diagnostics& diagnostics) {
  return spec.cluster ? Copier(spec, diagnostics).copy_out() : spec;
}

}  // namespace plimsoll
