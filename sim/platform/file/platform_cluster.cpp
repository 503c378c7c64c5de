#include "platform/file/platform_cluster.hpp"

#include "base/names_hint.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using Name = Located<std::string>;

/// How often a part is made: of rails once for each place in a node.
enum class Made : std::uint8_t { once, per_node, per_place, per_copy };

/// How often what reaches parts of both is made.
Made made_for(Made a, Made b) {
  const bool crosses = a != b && std::min(a, b) == Made::per_node;
  return crosses ? Made::per_copy : std::max(a, b);
}

/// What a topology joins: an end of each copy, and the number in the name of its links.
struct Joined {
  std::int64_t number = 0;
  Name end;
};

class Copier {
 public:
  Copier(const PlatformSpec& spec, Diagnostics& diagnostics)
      : spec_(spec),
        cluster_(*spec.cluster),
        nodes_(cluster_.nodes ? cluster_.nodes->count : 1),
        diagnostics_(diagnostics) {}

  PlatformSpec copy_out();

 private:
  void find_made();
  void check_rail(const Name& rail);
  void share(const std::vector<Name>& shared, Made made);
  bool has_bounded_size();
  void copy_memories();
  void copy_processors();
  void copy_links();
  bool join_copies();
  void join_nodes();
  void join(const CopiesSpec& copies, const Name& hub, const std::vector<Joined>& all);
  void join_pair(const LinkSpec& link, const Joined& a, const Joined& b);
  bool has_topology(const CopiesSpec& copies, const char* whose);
  std::string joined_memory(const LinkSpec& link);
  std::string joined_of_node(const LinkSpec& link);

  [[nodiscard]] Made made(const std::string& memory) const {
    const auto found = made_.find(memory);
    return found == made_.end() ? Made::once : found->second;
  }
  [[nodiscard]] std::int64_t times(Made made) const {
    switch (made) {
      case Made::once:
        return 1;
      case Made::per_node:
        return nodes_;
      case Made::per_place:
        return cluster_.count;
      case Made::per_copy:
        break;
    }
    return nodes_ * cluster_.count;
  }
  [[nodiscard]] static Name numbered(const Name& name, std::int64_t number) {
    return {fmt::format("{}{}", name.value, number), name.where};
  }
  [[nodiscard]] static Name of_copy(const Name& name, Made made, std::int64_t number) {
    return made == Made::once ? name : numbered(name, number);
  }
  /// The memory that a part reaches which is made as often as `made` says, of that part's copy.
  [[nodiscard]] Name reached(const Name& memory, Made made, std::int64_t number) const {
    const Made its = this->made(memory.value);
    if (its == Made::once) return memory;
    if (its == made) return numbered(memory, number);
    return numbered(memory,
                    its == Made::per_node ? number / cluster_.count : number % cluster_.count);
  }

  const PlatformSpec& spec_;
  const ClusterSpec& cluster_;
  const std::int64_t nodes_;
  Diagnostics& diagnostics_;
  std::map<std::string, Made> made_;  ///< memories and switches
  PlatformSpec result_;
};

void Copier::find_made() {
  for (const auto& [name, memory] : spec_.memories) made_[name.value] = Made::per_copy;
  for (const Name& name : spec_.switches) made_[name.value] = Made::per_copy;
  share(cluster_.shared, cluster_.nodes ? Made::per_node : Made::once);
  if (!cluster_.nodes) return;
  share(cluster_.nodes->shared, Made::once);
  for (const Name& rail : cluster_.nodes->rails) check_rail(rail);
  share(cluster_.nodes->rails, Made::per_place);
}

void Copier::check_rail(const Name& rail) {
  if (made_.contains(rail.value) &&
      std::ranges::count(spec_.switches, rail.value, &Name::value) == 0)
    diagnostics_.error(rail.where,
                       fmt::format("`{}` is a memory; expected a switch for a rail", rail.value));
  else if (made_.contains(rail.value) && made(rail.value) != Made::per_copy)
    diagnostics_.error(rail.where,
                       fmt::format("`{}` is shared by the copies of a node, and is no rail: each "
                                   "has one of its own",
                                   rail.value));
}

void Copier::share(const std::vector<Name>& shared, Made made) {
  std::set<std::string> named;
  for (const Name& name : shared) {
    const auto known = made_.find(name.value);
    if (known == made_.end()) {
      std::vector<std::string> names;
      for (const auto& [its, times] : made_) names.push_back(its);
      diagnostics_.error(name.where, fmt::format("there is no memory `{}` to share", name.value),
                         diagnostics_.is_full() ? "" : hint_of_names(name.value, names));
    } else if (!named.insert(name.value).second) {
      diagnostics_.error(name.where, fmt::format("`{}` is shared twice", name.value));
    } else {
      known->second = made;
    }
  }
}

/// Links that a topology makes of so many.
std::size_t made_links(const CopiesSpec& copies) {
  const auto n = static_cast<std::size_t>(copies.count);
  return copies.topology == NamedTopology::mesh ? n * (n - 1) / 2 : n;
}

bool Copier::has_bounded_size() {
  const auto nodes = static_cast<std::size_t>(nodes_);
  const std::size_t n = static_cast<std::size_t>(cluster_.count) * nodes;
  const std::size_t memories = (spec_.memories.size() + spec_.switches.size()) * n;
  const std::size_t between_nodes = cluster_.nodes ? made_links(*cluster_.nodes) : 0;
  const std::size_t links = spec_.links.size() * n + made_links(cluster_) * nodes + between_nodes;
  const std::size_t most = std::max({memories, spec_.processors.size() * n, links});
  if (most <= kMaxParts) return true;
  diagnostics_.error(
      cluster_.where,
      fmt::format("this cluster makes {} parts of a kind, expected at most {}", most, kMaxParts));
  return false;
}

void Copier::copy_memories() {
  for (const auto& [name, memory] : spec_.memories)
    for (std::int64_t i = 0; i < times(made(name.value)); ++i) {
      auto copy = memory;
      if (copy && made(name.value) != Made::once) copy->copy_of = name.value;
      result_.memories.emplace_back(of_copy(name, made(name.value), i), std::move(copy));
    }
  for (const Name& name : spec_.switches)
    for (std::int64_t i = 0; i < times(made(name.value)); ++i)
      result_.switches.push_back(of_copy(name, made(name.value), i));
}

void Copier::copy_processors() {
  for (const auto& [name, processor] : spec_.processors) {
    const Made times_made = processor ? made(processor->memory.value) : Made::once;
    for (std::int64_t i = 0; i < times(times_made); ++i) {
      auto copy = processor;
      if (copy) copy->memory = of_copy(processor->memory, times_made, i);
      if (copy && times_made != Made::once) copy->copy_of = name.value;
      if (copy)
        for (Name& memory : copy->reaches)
          if (made(memory.value) <= times_made) memory = reached(memory, times_made, i);
      result_.processors.emplace_back(of_copy(name, times_made, i), std::move(copy));
    }
  }
}

void Copier::copy_links() {
  for (const auto& [name, link] : spec_.links) {
    Made times_made = Made::once;
    if (link)
      for (const Name& end : link->between) times_made = made_for(times_made, made(end.value));
    for (std::int64_t i = 0; i < times(times_made); ++i) {
      auto copy = link;
      if (copy)
        for (Name& end : copy->between) end = reached(end, times_made, i);
      result_.links.emplace_back(of_copy(name, times_made, i), std::move(copy));
    }
  }
}

/// The memory of each copy that the topology joins, or "" after reporting.
std::string Copier::joined_memory(const LinkSpec& link) {
  if (link.joins) {
    if (made(link.joins->value) == Made::per_copy) return link.joins->value;
    std::vector<std::string> copied;
    for (const auto& [name, its] : made_)
      if (its == Made::per_copy) copied.push_back(name);
    diagnostics_.error(link.joins->where,
                       fmt::format("`{}` is not a memory that each copy has", link.joins->value),
                       hint_of_names(link.joins->value, copied));
    return {};
  }
  std::set<std::string> memories;
  for (const auto& [name, processor] : spec_.processors) {
    if (!processor) return {};  // its error is told
    if (made(processor->memory.value) == Made::per_copy) memories.insert(processor->memory.value);
  }
  if (memories.size() == 1) return *memories.begin();
  diagnostics_.error(link.where, "the cluster's link needs `joins`: which memory of each copy");
  return {};
}

/// What of each node the topology of nodes joins, or "" after reporting.
std::string Copier::joined_of_node(const LinkSpec& link) {
  const bool has_hub = cluster_.link && cluster_.topology == NamedTopology::switched;
  if (!link.joins && has_hub) return cluster_.link->name.value;
  if (!link.joins) {
    diagnostics_.error(link.where,
                       "the link of nodes needs `joins`: which shared memory or switch of each");
    return {};
  }
  const std::string& asked = link.joins->value;
  std::vector<std::string> per_node;
  if (has_hub) per_node.push_back(cluster_.link->name.value);
  for (const auto& [name, its] : made_)
    if (its == Made::per_node || (its == Made::per_copy && cluster_.count == 1))
      per_node.push_back(name);
  if (std::ranges::find(per_node, asked) != per_node.end()) return asked;
  diagnostics_.error(link.joins->where, fmt::format("`{}` is not a part that each node has", asked),
                     hint_of_names(asked, per_node));
  return {};
}

void Copier::join_pair(const LinkSpec& link, const Joined& a, const Joined& b) {
  LinkSpec copy = link;
  copy.between = {a.end, b.end};
  const Name name{fmt::format("{}{}-{}", link.name.value, a.number, b.number), link.name.where};
  result_.links.emplace_back(name, std::move(copy));
}

/// `hub` is the name of the switch, where the topology has one.
void Copier::join(const CopiesSpec& copies, const Name& hub, const std::vector<Joined>& all) {
  const LinkSpec& link = *copies.link;
  switch (*copies.topology) {
    case NamedTopology::switched:
      result_.switches.push_back(hub);
      for (const Joined& each : all) {
        LinkSpec copy = link;
        copy.between = {each.end, hub};
        result_.links.emplace_back(numbered(link.name, each.number), std::move(copy));
      }
      return;
    case NamedTopology::mesh:
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = i + 1; j < all.size(); ++j) join_pair(link, all[i], all[j]);
      return;
    case NamedTopology::chain:
    case NamedTopology::ring:
      for (std::size_t i = 0; i + 1 < all.size(); ++i) join_pair(link, all[i], all[i + 1]);
      if (*copies.topology == NamedTopology::ring) join_pair(link, all.back(), all.front());
  }
}

/// Whether there is one that can be; reports where it is half given or too small.
bool Copier::has_topology(const CopiesSpec& copies, const char* whose) {
  if (copies.topology.has_value() != copies.link.has_value()) {
    diagnostics_.error(
        copies.where, fmt::format("{} a `{}` but no `{}`", whose, copies.link ? "link" : "topology",
                                  copies.link ? "topology" : "link"));
    return false;
  }
  if (copies.topology != NamedTopology::ring || copies.count > 2)
    return copies.topology.has_value();
  diagnostics_.error(copies.where, "a ring has at least 3 copies");
  return false;
}

/// Whether all that was asked for could be joined.
bool Copier::join_copies() {
  if (!has_topology(cluster_, "the cluster has")) return !cluster_.topology && !cluster_.link;
  const LinkSpec& link = *cluster_.link;
  const std::string memory = joined_memory(link);
  if (memory.empty()) return false;
  for (std::int64_t node = 0; node < nodes_; ++node) {
    std::vector<Joined> all;
    for (std::int64_t i = node * cluster_.count; i < (node + 1) * cluster_.count; ++i)
      all.push_back({i, numbered({memory, link.where}, i)});
    join(cluster_, cluster_.nodes ? numbered(link.name, node) : link.name, all);
  }
  return true;
}

void Copier::join_nodes() {
  if (!cluster_.nodes || !has_topology(*cluster_.nodes, "the cluster's nodes have")) return;
  const LinkSpec& link = *cluster_.nodes->link;
  const std::string part = joined_of_node(link);
  if (part.empty()) return;
  std::vector<Joined> all;
  for (std::int64_t node = 0; node < nodes_; ++node)
    all.push_back({node, numbered({part, link.where}, node)});
  join(*cluster_.nodes, link.name, all);
}

PlatformSpec Copier::copy_out() {
  result_ = spec_;
  result_.cluster.reset();
  if (!has_bounded_size()) return result_;
  find_made();
  result_.memories.clear();
  result_.switches.clear();
  result_.processors.clear();
  result_.links.clear();
  copy_memories();
  copy_processors();
  copy_links();
  if (join_copies()) join_nodes();
  return std::move(result_);
}

}  // namespace

PlatformSpec copy_out(const PlatformSpec& spec, Diagnostics& diagnostics) {
  return spec.cluster ? Copier(spec, diagnostics).copy_out() : spec;
}

}  // namespace plimsoll
