#include "policy/remat/graph/rules/run_list.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

RunList::RunList(const OperatorGraph& graph, const RerunGroups& groups)
    : graph_(&graph), groups_(&groups) {
  it_.nodes.resize(graph.nodes.size());
  std::iota(it_.nodes.begin(), it_.nodes.end(), 0u);
  it_.instance_of = groups.of_node;
  for (std::uint32_t group = 0; group < groups.groups.size(); ++group)
    it_.instances.push_back({.group = group});
}

void RunList::look_from(std::uint32_t place) {
  it_.place = place;
  copies_.clear();
  done_.clear();
  made_.resize(it_.instances.size());
  read_.resize(it_.instances.size());
  for (std::vector<std::uint32_t>& list : made_) list.clear();
  for (std::vector<std::uint32_t>& list : read_) list.clear();
  std::vector<std::uint32_t> latest(graph_->values.size(), OperatorGraph::kNone);
  std::vector<bool> is_seen(it_.instances.size(), false), is_late(it_.instances.size(), false);
  for (std::uint32_t run = 0; run < it_.nodes.size(); ++run) {
    const std::uint32_t instance = it_.instance_of[run];
    if (run >= place) is_late[instance] = true;
    if (!is_seen[instance]) done_.push_back(instance);
    is_seen[instance] = true;
    add_reads(run, latest);
    for (const std::uint32_t value : graph_->nodes[it_.nodes[run]].makes) {
      latest[value] = static_cast<std::uint32_t>(copies_.size());
      made_[instance].push_back(latest[value]);
      copies_.push_back({.value = value, .last_read = run});
    }
  }
  std::erase_if(done_, [&](std::uint32_t instance) { return is_late[instance]; });
}

void RunList::add_reads(std::uint32_t place, const std::vector<std::uint32_t>& latest) {
  const std::uint32_t instance = it_.instance_of[place];
  const std::vector<std::uint32_t>& own = made_[instance];
  std::vector<std::uint32_t>& read = read_[instance];
  for (const std::uint32_t value : graph_->nodes[it_.nodes[place]].reads) {
    const std::uint32_t number = latest[value];
    if (number == OperatorGraph::kNone) continue;  // it is being moved
    Copy& copy = copies_[number];
    copy.last_read = place;
    if (std::ranges::find(own, number) != own.end()) continue;
    const bool is_first = std::ranges::find(read, number) == read.end();
    if (is_first) read.push_back(number);
    if (place < it_.place && is_first) ++copy.reads_before;
    if (place == it_.place) copy.is_read_here = true;
    if (place > it_.place) copy.next_read = std::min(copy.next_read, place);
  }
}

void RunList::add_runs(std::uint32_t group, std::uint32_t before, bool is_moved) {
  const auto instance = static_cast<std::uint32_t>(it_.instances.size());
  it_.instances.push_back({.group = group, .is_moved = is_moved});
  const std::vector<std::uint32_t>& nodes = groups_->groups[group].nodes;
  it_.nodes.insert(it_.nodes.begin() + before, nodes.begin(), nodes.end());
  it_.instance_of.insert(it_.instance_of.begin() + before, nodes.size(), instance);
}

void RunList::run_again(std::uint32_t instance, std::uint32_t before) {
  add_runs(it_.instances[instance].group, before, it_.instances[instance].is_moved);
}

void RunList::move(std::uint32_t instance, std::uint32_t before) {
  add_runs(it_.instances[instance].group, before, true);
  std::uint32_t left = 0, place = it_.place;
  for (std::uint32_t run = 0; run < it_.nodes.size(); ++run) {
    if (it_.instance_of[run] == instance) {
      if (run < it_.place) --place;
      continue;
    }
    it_.nodes[left] = it_.nodes[run];
    it_.instance_of[left++] = it_.instance_of[run];
  }
  it_.nodes.resize(left);
  it_.instance_of.resize(left);
  it_.place = place;
}

}  // namespace plimsoll
