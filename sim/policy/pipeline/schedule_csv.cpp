#include "policy/pipeline/schedule_csv.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <tuple>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Kind = Task::Kind;
using Key = std::tuple<Kind, std::uint32_t, std::uint32_t>;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{32} << 20;

Key key_of(const Task& task) {
  return {task.kind, task.slot, task.microbatch};
}

std::string name_of(const Task& task) {
  constexpr const char* kLetters[] = {"F", "B", "I", "W"};
  return fmt::format("{}{}{}", task.slot, kLetters[static_cast<std::size_t>(task.kind)],
                     task.microbatch);
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& origin) : origin_(origin) {}

  CsvSchedule read(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      read_row(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (orders_.empty()) diagnostics_.error({origin_, 1, 1}, "has no row; expected one a rank");
    diagnostics_.throw_if_errors();
    require_whole();
    diagnostics_.throw_if_errors();
    require_progress();
    diagnostics_.throw_if_errors();
    CsvSchedule result{{{}, std::move(orders_), {}, 0}, microbatches_, false};
    for (std::uint32_t s = 0; s < stages_; ++s)
      result.schedule.placement.push_back(places_.at({Kind::forward, s, 0}).rank);
    for (const auto& [key, place] : places_)
      result.splits_backward |= std::get<Kind>(key) == Kind::backward_input;
    return result;
  }

 private:
  struct Place {
    std::uint32_t rank = 0;
    std::size_t index = 0;  ///< in the order of the rank
    Location where;
  };

  void read_row(const std::string& row) {
    orders_.emplace_back();
    const int line = static_cast<int>(orders_.size());
    for (std::size_t begin = 0; begin <= row.size();) {
      const std::size_t end = std::min(row.find(',', begin), row.size());
      std::size_t first = begin, last = end;
      while (first < last && (row[first] == ' ' || row[first] == '\t' || row[first] == '"'))
        ++first;
      while (first < last && (row[last - 1] == ' ' || row[last - 1] == '\t' ||
                              row[last - 1] == '\r' || row[last - 1] == '"'))
        --last;
      if (first < last)
        read_cell(row.substr(first, last - first), {origin_, line, static_cast<int>(first) + 1});
      begin = end + 1;
    }
  }

  void read_cell(const std::string& cell, const Location& where) {
    static const std::regex action("([0-9]{1,6})(F|B|I|W)([0-9]{1,6})");
    static const std::regex pair(
        "\\(([0-9]{1,6})(F)([0-9]{1,6});([0-9]{1,6})(B)([0-9]{1,6})\\)OVERLAP_F_B");
    std::smatch match;
    if (cell.size() > 64 ||
        (!std::regex_match(cell, match, action) && !std::regex_match(cell, match, pair))) {
      const bool moves =
          cell.find("SEND") != std::string::npos || cell.find("RECV") != std::string::npos ||
          cell.find("SHARD") != std::string::npos || cell.find("REDUCE_GRAD") != std::string::npos;
      diagnostics_.error(
          where,
          fmt::format("found `{}`; expected an action such as `0F1`, `0B1`, `0I1`, `0W1` or "
                      "`(0F4;7B0)OVERLAP_F_B`",
                      cell.substr(0, 64)),
          moves ? "only the compute_only form is read: sends follow from the order" : "");
      return;
    }
    for (std::size_t at = 1; at < match.size(); at += 3) {
      const auto number = [&](std::size_t i) {
        return static_cast<std::uint32_t>(std::stoul(match[i].str()));
      };
      const char letter = match[at + 1].str().front();
      const Kind kind = letter == 'F'   ? Kind::forward
                        : letter == 'B' ? Kind::backward
                        : letter == 'I' ? Kind::backward_input
                                        : Kind::backward_weight;
      add({kind, number(at), number(at + 2), match.size() > 4 && at == 1}, where);
    }
  }

  void add(const Task& task, const Location& where) {
    const auto rank = static_cast<std::uint32_t>(orders_.size() - 1);
    const auto [found, fresh] =
        places_.try_emplace(key_of(task), Place{rank, orders_[rank].size(), where});
    if (!fresh)
      diagnostics_.error(where, fmt::format("`{}` is there already, in line {}", name_of(task),
                                            found->second.where.line));
    const auto [stage, first] = ranks_.try_emplace(task.slot, rank);
    if (stage->second != rank)
      diagnostics_.error(
          where, fmt::format("stage {} is on rank {} already; a stage is on one rank", task.slot,
                             stage->second));
    orders_[rank].push_back(task);
    stages_ = std::max(stages_, task.slot + 1);
    microbatches_ = std::max(microbatches_, task.microbatch + 1);
  }

  /// Every stage has a forward, and a backward or both of its halves, for every microbatch. The
  /// first that is missing is enough.
  void require_whole() {
    const auto has = [&](Kind kind, std::uint32_t s, std::uint32_t k) {
      return places_.contains({kind, s, k});
    };
    for (std::uint32_t s = 0; s < stages_; ++s)
      for (std::uint32_t k = 0; k < microbatches_; ++k) {
        const bool whole = has(Kind::backward, s, k), input = has(Kind::backward_input, s, k),
                   weight = has(Kind::backward_weight, s, k);
        if (has(Kind::forward, s, k) && (whole ? !input && !weight : input && weight)) continue;
        const int line = ranks_.contains(s) ? static_cast<int>(ranks_.at(s)) + 1 : 1;
        diagnostics_.error(
            {origin_, line, 0},
            fmt::format("stage {} of {} and microbatch {} of {} need one F, and one B or one each "
                        "of I and W",
                        s, stages_, k, microbatches_));
        return;
      }
    if (stages_ % orders_.size() != 0)
      diagnostics_.error({origin_, 1, 0},
                         fmt::format("{} stages on {} ranks; expected a multiple of the ranks",
                                     stages_, orders_.size()));
  }

  /// The place of the backward, or of its input half.
  const Place& backward(std::uint32_t slot, std::uint32_t microbatch) const {
    const auto found = places_.find({Kind::backward, slot, microbatch});
    return found != places_.end() ? found->second
                                  : places_.at({Kind::backward_input, slot, microbatch});
  }

  std::vector<Place> inputs(const Task& task) const {
    const std::uint32_t s = task.slot, k = task.microbatch;
    if (task.kind == Kind::backward_weight) return {backward(s, k)};
    if (task.kind == Kind::forward)
      return s == 0 ? std::vector<Place>{}
                    : std::vector<Place>{places_.at({Kind::forward, s - 1, k})};
    std::vector<Place> before{places_.at({Kind::forward, s, k})};
    if (s + 1 < stages_) before.push_back(backward(s + 1, k));
    return before;
  }

  /// What the next task of a rank, or one of its pair, still waits for.
  std::optional<std::pair<Task, Place>> awaited(std::uint32_t rank) const {
    const std::vector<Task>& order = orders_[rank];
    for (std::size_t i = next_[rank]; i < order.size(); ++i) {
      for (const Place& place : inputs(order[i]))
        if (place.index >= next_[place.rank]) return std::pair{order[i], place};
      if (!order[i].overlaps_next) break;
    }
    return std::nullopt;
  }

  void require_progress() {
    next_.assign(orders_.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint32_t r = 0; r < orders_.size(); ++r)
        while (next_[r] < orders_[r].size() && !awaited(r)) {
          next_[r] += orders_[r][next_[r]].overlaps_next ? 2u : 1u;
          progress = true;
        }
    }
    for (std::uint32_t r = 0; r < orders_.size(); ++r)
      if (next_[r] < orders_[r].size()) {
        report_cycle(r);
        return;
      }
  }

  /// Follows what is waited for from rank to rank, until a rank comes again.
  void report_cycle(std::uint32_t rank) {
    std::vector<std::uint32_t> path;
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      rank = awaited(rank)->second.rank;
    }
    path.erase(path.begin(), std::ranges::find(path, rank));
    std::string waits;
    for (const std::uint32_t r : path) {
      const auto [task, place] = *awaited(r);
      waits += fmt::format("{}rank {} waits at `{}` for `{}` of rank {} (line {}, column {})",
                           waits.empty() ? "" : "; ", r, name_of(task),
                           name_of(orders_[place.rank][place.index]), place.rank, place.where.line,
                           place.where.column);
    }
    const Task& first = orders_[path.front()][next_[path.front()]];
    diagnostics_.error(places_.at(key_of(first)).where, "the schedule hangs: " + waits);
  }

  const std::string& origin_;
  Diagnostics diagnostics_;
  std::vector<std::vector<Task>> orders_;
  std::map<Key, Place> places_;
  std::map<std::uint32_t, std::uint32_t> ranks_;  ///< by stage
  std::vector<std::size_t> next_;                 ///< by rank
  std::uint32_t stages_ = 0, microbatches_ = 0;
};

}  // namespace

CsvSchedule parse_schedule_csv(const std::string& text, const std::string& origin) {
  return CsvReader(origin).read(text);
}

CsvSchedule read_schedule_csv(const std::filesystem::path& path) {
  const Location where{path.string(), 0, 0};
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    refuse_parameter(where, "there is no such file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostBytes) refuse_parameter(where, "is not a file of at most 32 MiB");
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) refuse_parameter(where, "cannot be read to its end");
  return parse_schedule_csv(text, where.origin);
}

}  // namespace plimsoll
