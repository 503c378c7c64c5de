#include "policy/pipeline/orders/schedule_csv_writer.hpp"

#include "policy/pipeline/schedule/task_runs.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

using Kind = Task::Kind;
using CsvRow = std::vector<std::string>;

/// A forward's or a backward's result: slot, microbatch, forward.
using Value = std::tuple<std::uint32_t, std::uint32_t, bool>;

std::string cell_of(const Task& task) {
  const char* type = task.kind == Kind::forward          ? "F"
                     : task.kind == Kind::backward       ? "B"
                     : task.kind == Kind::backward_input ? "I"
                                                         : "W";
  return fmt::format("{}{}{}", task.slot, type, task.microbatch);
}

std::string cell_of(std::span<const Task> tasks) {
  if (tasks.size() == 1) return cell_of(tasks.front());
  return fmt::format("({};{})OVERLAP_F_B", cell_of(tasks.front()), cell_of(tasks.back()));
}

std::string text_of(const std::vector<CsvRow>& rows) {
  std::string text;
  for (const CsvRow& row : rows) text += fmt::format("{}\r\n", fmt::join(row, ","));
  return text;
}

bool makes_value(const Task& task) {
  return task.kind != Kind::backward_weight;
}

Value value_of(const Task& task) {
  return {task.slot, task.microbatch, task.kind == Kind::forward};
}

/// What the task reads of other tasks.
std::vector<Value> inputs_of(const Task& task, std::uint32_t slots) {
  const std::uint32_t s = task.slot, k = task.microbatch;
  if (task.kind == Kind::forward)
    return s == 0 ? std::vector<Value>{} : std::vector{Value{s - 1, k, true}};
  if (task.kind == Kind::backward_weight) return {Value{s, k, false}};
  std::vector<Value> inputs{Value{s, k, true}};
  if (s + 1 < slots) inputs.push_back({s + 1, k, false});
  return inputs;
}

/// Runs the orders, a unit or pair at a time; `visit(rank, tasks)` is called when their inputs are
/// made.
void for_tasks_in_turn(const Schedule& schedule, auto visit) {
  const auto slots = static_cast<std::uint32_t>(schedule.placement.size());
  std::map<Value, bool> made;
  std::vector<std::size_t> next(schedule.orders.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::uint32_t rank = 0; rank < schedule.orders.size(); ++rank) {
      if (next[rank] == schedule.orders[rank].size()) continue;
      const auto tasks = next_tasks(schedule.orders[rank], next[rank]);
      const bool ready = std::ranges::all_of(tasks, [&](const Task& task) {
        return std::ranges::all_of(inputs_of(task, slots),
                                   [&](const Value& value) { return made.contains(value); });
      });
      if (!ready) continue;
      visit(rank, tasks);
      for (const Task& task : tasks)
        if (makes_value(task)) made[value_of(task)] = true;
      next[rank] += tasks.size();
      progress = true;
    }
  }
}

/// Receives of all ranks, as they are sent.
class Messages {
 public:
  explicit Messages(const Schedule& schedule)
      : schedule_(schedule), rows_(schedule.orders.size()) {}

  void add(std::uint32_t rank, std::span<const Task> tasks) {
    const auto slots = static_cast<std::uint32_t>(schedule_.placement.size());
    for (const Task& task : tasks)
      for (const Value& value : inputs_of(task, slots)) receive(rank, value);
    rows_[rank].push_back(cell_of(tasks));
    for (const Task& task : tasks)
      if (makes_value(task)) send(rank, value_of(task));
  }

  [[nodiscard]] const std::vector<CsvRow>& rows() const { return rows_; }

 private:
  void send(std::uint32_t rank, const Value& value) {
    const auto [slot, microbatch, forward] = value;
    if (forward ? slot + 1 == schedule_.placement.size() : slot == 0) return;
    const std::uint32_t to = schedule_.placement[forward ? slot + 1 : slot - 1];
    if (to == rank) return;
    rows_[rank].push_back(fmt::format("{}SEND_{}{}", slot, forward ? "F" : "B", microbatch));
    sent_[{rank, to}].push_back(value);
  }

  /// And all that the same rank sent before it.
  void receive(std::uint32_t rank, const Value& value) {
    std::deque<Value>& sent = sent_[{schedule_.placement[std::get<0>(value)], rank}];
    if (std::ranges::find(sent, value) == sent.end()) return;  // of this rank, or received
    for (bool found = false; !found; sent.pop_front()) {
      const auto [slot, microbatch, forward] = sent.front();
      rows_[rank].push_back(fmt::format("{}RECV_{}{}", forward ? slot + 1 : slot - 1,
                                        forward ? "F" : "B", microbatch));
      found = sent.front() == value;
    }
  }

  const Schedule& schedule_;
  std::vector<CsvRow> rows_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Value>> sent_;  ///< not received
};

}  // namespace

std::string compute_csv(const Schedule& schedule) {
  const auto slots = static_cast<std::uint32_t>(schedule.placement.size());
  std::vector<CsvRow> rows(schedule.orders.size());
  std::map<Value, std::size_t> ready;  // the first column after that of its maker
  for_tasks_in_turn(schedule, [&](std::uint32_t rank, std::span<const Task> tasks) {
    CsvRow& row = rows[rank];
    std::size_t column = row.size();
    for (const Task& task : tasks)
      for (const Value& value : inputs_of(task, slots)) column = std::max(column, ready.at(value));
    row.resize(column);
    row.push_back(cell_of(tasks));
    for (const Task& task : tasks)
      if (makes_value(task)) ready[value_of(task)] = column + 1;
  });
  const std::size_t longest = std::ranges::max(rows, {}, &CsvRow::size).size();
  for (CsvRow& row : rows) row.resize(longest);
  return text_of(rows);
}

std::string communication_csv(const Schedule& schedule) {
  Messages messages(schedule);
  for_tasks_in_turn(schedule, [&](std::uint32_t rank, std::span<const Task> tasks) {
    messages.add(rank, tasks);
  });
  return text_of(messages.rows());
}

}  // namespace plimsoll
