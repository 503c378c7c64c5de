#include "policy/hybrid/poet/published_program.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

bool is_chosen(const std::vector<double>& columns, int column) {
  return column >= 0 && columns[static_cast<std::size_t>(column)] > 0.5;
}

}  // namespace

PublishedProgram::PublishedProgram(const PublishedTask& task)
    : task_(task), nodes_(task.graph.nodes.size()) {
  add_columns();
  for (std::size_t stage = 0; stage < nodes_; ++stage) {
    add_reads(stage);
    add_flow(stage);
    add_memory(stage);
  }
  add_time();
}

std::int64_t PublishedProgram::bytes(std::uint32_t value) const {
  return task_.graph.values[value].bytes.count();
}

void PublishedProgram::add_columns() {
  const std::size_t values = task_.graph.values.size();
  runs_.assign(nodes_, std::vector<int>(nodes_, kNever));
  for (ByStage* columns : {&there_, &saved_, &in_, &out_})
    columns->assign(nodes_, std::vector<int>(values, kNever));
  for (std::size_t stage = 0; stage < nodes_; ++stage) {
    for (std::size_t node = 0; node <= stage; ++node)
      if (node == stage || (task_.recompute && !task_.graph.nodes[node].runs_once))
        runs_[stage][node] = program_.add({.cost = task_.runs[node]});
    program_.rows.push_back({.terms = {{runs_[stage][stage], 1}}, .least = 1, .most = 1});
    for (std::uint32_t value = 0; value < values; ++value) {
      if (task_.graph.values[value].maker >= stage) continue;
      there_[stage][value] = program_.add({});
      if (!task_.paging) continue;
      saved_[stage][value] = program_.add({});
      in_[stage][value] = program_.add({.cost = task_.backs[value]});
      out_[stage][value] = program_.add({.cost = task_.outs[value]});
    }
  }
}

void PublishedProgram::at_most(std::vector<std::pair<int, std::int64_t>> terms, std::int64_t most) {
  std::erase_if(terms, [](const auto& term) { return term.first == kNever; });
  program_.rows.push_back({.terms = std::move(terms), .most = most});
}

void PublishedProgram::add_reads(std::size_t stage) {
  for (std::size_t node = 0; node <= stage; ++node) {
    if (runs_[stage][node] == kNever) continue;
    for (const std::uint32_t value : task_.graph.nodes[node].reads)
      at_most({{runs_[stage][node], 1},
               {runs_[stage][task_.graph.values[value].maker], -1},
               {there_[stage][value], -1}},
              0);
  }
}

void PublishedProgram::add_flow(std::size_t stage) {
  for (std::uint32_t value = 0; value < task_.graph.values.size(); ++value) {
    const std::uint32_t maker = task_.graph.values[value].maker;
    if (maker > stage) continue;
    if (stage + 1 < nodes_)
      at_most({{there_[stage + 1][value], 1},
               {there_[stage][value], -1},
               {runs_[stage][maker], -1},
               {in_[stage][value], -1}},
              0);
    if (!task_.paging) continue;
    if (stage + 1 < nodes_)
      at_most({{saved_[stage + 1][value], 1}, {saved_[stage][value], -1}, {out_[stage][value], -1}},
              0);
    if (in_[stage][value] == kNever) continue;
    at_most({{in_[stage][value], 1}, {saved_[stage][value], -1}}, 0);
    at_most({{out_[stage][value], 1}, {there_[stage][value], -1}}, 0);
  }
}

/// One free of `value` behind `reader`, which lowers `level`.
void PublishedProgram::add_frees(std::size_t stage, std::uint32_t value, std::size_t reader,
                                 std::vector<std::pair<int, std::int64_t>>& level) {
  const int free = program_.add({});
  const int run = runs_[stage][reader];
  // free + (1 - run + uses later + kept) >= 1
  std::vector<std::pair<int, std::int64_t>> hazards{{free, -1}, {run, 1}};
  at_most({{free, 1}, {run, -1}}, 0);
  const auto add_hazard = [&](int column) {
    if (column == kNever) return;
    hazards.emplace_back(column, -1);
    at_most({{free, 1}, {column, 1}}, 1);
  };
  for (const std::uint32_t later : task_.graph.values[value].readers)
    if (later > reader && later <= stage) add_hazard(runs_[stage][later]);
  if (stage + 1 < nodes_) add_hazard(there_[stage + 1][value]);
  at_most(std::move(hazards), 0);
  level.emplace_back(free, bytes(value));
}

void PublishedProgram::add_memory(std::size_t stage) {
  std::int64_t unit = 1;
  for (const OperatorGraph::Value& value : task_.graph.values)
    unit = std::max(unit, value.bytes.count());
  // A row for each node: what was there, and what it makes, less what is free, is the new level.
  std::vector<std::pair<int, std::int64_t>> before;
  for (std::uint32_t value = 0; value < task_.graph.values.size(); ++value)
    if (there_[stage][value] != kNever) before.emplace_back(there_[stage][value], -bytes(value));
  for (std::size_t node = 0; node <= stage; ++node) {
    const int run = runs_[stage][node];
    const int level = program_.add(
        {.most = static_cast<double>(task_.room) / static_cast<double>(unit), .is_whole = false});
    std::vector<std::pair<int, std::int64_t>> terms = before;
    if (run != kNever)
      for (const std::uint32_t value : task_.graph.nodes[node].makes)
        terms.emplace_back(run, -bytes(value));
    terms.emplace_back(level, unit);
    program_.rows.push_back({.terms = std::move(terms), .least = 0, .most = 0, .unit = unit});
    before = {{level, -unit}};
    if (run == kNever) continue;
    for (const std::uint32_t value : task_.graph.nodes[node].reads)
      for (int times = 0; times < (value == task_.counted_twice ? 2 : 1); ++times)
        add_frees(stage, value, node, before);
  }
}

void PublishedProgram::add_time() {
  if (!task_.most_compute) return;
  WholeProgram::Row row{.most = task_.most_compute->count()};
  row.unit = std::max<std::int64_t>(1, *row.most / 1000);
  for (std::size_t stage = 0; stage < nodes_; ++stage)
    for (std::size_t node = 0; node <= stage; ++node)
      if (runs_[stage][node] != kNever)
        row.terms.emplace_back(runs_[stage][node], task_.graph.nodes[node].time.count());
  program_.rows.push_back(std::move(row));
}

std::vector<PagingStep> PublishedProgram::steps_of(const std::vector<double>& columns) const {
  const auto values = static_cast<std::uint32_t>(task_.graph.values.size());
  std::vector<bool> is_there(values, false), is_saved(values, false);
  std::vector<PagingStep> steps;
  const auto take = [&](PagingMove move, std::uint32_t id) { steps.push_back({move, id}); };
  for (std::size_t stage = 0; stage < nodes_; ++stage) {
    for (std::uint32_t value = 0; value < values; ++value)
      if (is_chosen(columns, out_[stage][value]) && is_there[value] && !is_saved[value]) {
        take(PagingMove::copy_out, value);
        is_saved[value] = true;
      }
    for (std::uint32_t node = 0; node <= stage; ++node) {
      if (!is_chosen(columns, runs_[stage][node])) continue;
      const auto& makes = task_.graph.nodes[node].makes;
      const auto has = [&](std::uint32_t value) { return static_cast<bool>(is_there[value]); };
      if (node < stage && std::ranges::all_of(makes, has)) continue;
      take(PagingMove::run, node);
      for (const std::uint32_t value : makes)
        is_there[value] = !task_.graph.values[value].readers.empty();
    }
    if (stage + 1 == nodes_) break;
    for (std::uint32_t value = 0; value < values; ++value)
      if (is_there[value] && !is_chosen(columns, there_[stage + 1][value])) {
        take(PagingMove::drop, value);
        is_there[value] = false;
      }
    for (std::uint32_t value = 0; value < values; ++value)
      if (is_chosen(columns, in_[stage][value]) && is_saved[value] && !is_there[value] &&
          is_chosen(columns, there_[stage + 1][value])) {
        take(PagingMove::read_back, value);
        is_there[value] = true;
      }
  }
  return steps;
}

}  // namespace plimsoll
