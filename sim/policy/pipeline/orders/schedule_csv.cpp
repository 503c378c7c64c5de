#include "policy/pipeline/orders/schedule_csv.hpp"

#include "base/utf8.hpp"

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

struct Action {
  const char* name;
  Kind kind;
};
constexpr Action kActions[] = {
    {"F", Kind::forward},          {"B", Kind::backward},
    {"I", Kind::backward_input},   {"W", Kind::backward_weight},
    {"SEND_F", Kind::send_output}, {"SEND_B", Kind::send_gradient},
    {"RECV_F", Kind::await_input}, {"RECV_B", Kind::await_gradient},
};

constexpr std::size_t kLongestCell = 64;
constexpr std::size_t kMostDigits = 6;
constexpr std::uintmax_t kMostBytes = std::uintmax_t{32} << 20;

Key key_of(const Task& task) {
  return {task.kind, task.slot, task.microbatch};
}

std::string name_of(const Task& task) {
  const auto found = std::ranges::find(kActions, task.kind, &Action::kind);
  return fmt::format("{}{}{}", task.slot, found->name, task.microbatch);
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& origin) : origin_(origin) {}

  CsvSchedule read(const std::string& text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    const std::size_t start = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (std::size_t begin = start; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      read_row(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (orders_.empty()) diagnostics_.error({origin_, 1, 1}, "has no row; expected one a rank");
    diagnostics_.throw_if_errors();
    if (stages_ == 0)
      diagnostics_.error({origin_, 1, 1}, "has no action in any row; expected some, such as `0F0`");
    diagnostics_.throw_if_errors();
    require_whole();
    diagnostics_.throw_if_errors();
    if (has_messages_) require_messages();
    diagnostics_.throw_if_errors();
    require_progress();
    diagnostics_.throw_if_errors();
    CsvSchedule result{{{}, std::move(orders_)}, microbatches_, false};
    for (std::uint32_t s = 0; s < stages_; ++s)
      result.schedule.placement.push_back(places_.at({Kind::forward, s, 0}).rank);
    result.schedule.messages_in_orders = has_messages_;
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
      read_field(row, begin, end, line);
      begin = end + 1;
    }
  }

  /// A cell with the blanks around it; in a pair of quotes or without.
  void read_field(const std::string& row, std::size_t first, std::size_t last, int line) {
    const auto is_blank = [&](std::size_t at) {
      return row[at] == ' ' || row[at] == '\t' || row[at] == '\r';
    };
    const std::size_t begin = first;
    while (first < last && is_blank(first)) ++first;
    while (first < last && is_blank(last - 1)) --last;
    if (first < last && row[first] == '"') {
      if (last - first < 2 || row[last - 1] != '"') {
        diagnostics_.error({origin_, line, static_cast<int>(first) + 1},
                           "the quote does not close before the next comma or the end of the line");
        return;
      }
      ++first;
      --last;
      while (first < last && is_blank(first)) ++first;
      while (first < last && is_blank(last - 1)) --last;
    }
    const Location where{origin_, line, static_cast<int>((first < last ? first : begin) + 1)};
    if (first < last)
      read_cell(row.substr(first, last - first), where);
    else
      empty_.push_back(where);
  }

  void read_cell(const std::string& cell, const Location& where) {
    static const std::regex action("([0-9]+)(F|B|I|W|(?:SEND|RECV)_[FB])([0-9]+)");
    static const std::regex pair("\\(([0-9]+)(F)([0-9]+);([0-9]+)(B)([0-9]+)\\)OVERLAP_F_B");
    static const std::regex state("([0-9]+)(UNSHARD|RESHARD|REDUCE_GRAD)");
    std::smatch match;
    const bool is_short = cell.size() <= kLongestCell;
    const bool is_state = is_short && std::regex_match(cell, match, state);
    if (!is_state && (!is_short || (!std::regex_match(cell, match, action) &&
                                    !std::regex_match(cell, match, pair))))
      return diagnostics_.error(
          where, fmt::format("found `{}`; expected an action such as `0F1`, `0B1`, `0I1`, `0W1`, "
                             "`(0F4;7B0)OVERLAP_F_B`, `0SEND_F1`, `1RECV_F1` or `0UNSHARD`",
                             visible_utf8(cell, kLongestCell)));
    for (std::size_t at = 1; at < match.size(); ++at)
      if (cell[static_cast<std::size_t>(match.position(at))] <= '9' &&
          static_cast<std::size_t>(match.length(at)) > kMostDigits)
        return diagnostics_.error(
            where,
            fmt::format("found `{}`; expected numbers of at most {} digits", cell, kMostDigits));
    if (is_state) {
      shards_.push_back({static_cast<std::uint32_t>(std::stoul(match[1].str())), match[2].str(),
                         orders_.size() - 1, orders_.back().size(), where});
      has_messages_ = true;
      return;
    }
    for (std::size_t at = 1; at < match.size(); at += 3) {
      const auto number = [&](std::size_t i) {
        return static_cast<std::uint32_t>(std::stoul(match[i].str()));
      };
      const std::string type = match[at + 1].str();
      const auto found =
          std::ranges::find_if(kActions, [&](const Action& a) { return type == a.name; });
      has_messages_ |= is_message(found->kind);
      add({found->kind, number(at), number(at + 2), match.size() > 4 && at == 1}, where);
    }
  }

  static bool is_message(Kind kind) {
    return kind == Kind::send_output || kind == Kind::send_gradient || kind == Kind::await_input ||
           kind == Kind::await_gradient;
  }

  void add(const Task& task, const Location& where) {
    const auto rank = static_cast<std::uint32_t>(orders_.size() - 1);
    const auto [found, fresh] =
        places_.try_emplace(key_of(task), Place{rank, orders_[rank].size(), where});
    if (!fresh)
      diagnostics_.error(where, fmt::format("`{}` is there already, in {}", name_of(task),
                                            place_of(found->second.where)));
    const auto [stage, first] = ranks_.try_emplace(task.slot, rank);
    if (stage->second != rank)
      diagnostics_.error(
          where, fmt::format("stage {} is on rank {} already; a stage is on one rank", task.slot,
                             stage->second));
    orders_[rank].push_back(task);
    if (task.slot >= stages_) last_stage_ = {name_of(task), where};
    if (task.microbatch >= microbatches_) last_microbatch_ = {name_of(task), where};
    stages_ = std::max(stages_, task.slot + 1);
    microbatches_ = std::max(microbatches_, task.microbatch + 1);
  }

  static std::string place_of(const Location& where) {
    return fmt::format("line {}, column {}", where.line, where.column);
  }

  /// Every rank has stages, and every stage a rank and all of its microbatches.
  void require_whole() {
    for (std::size_t r = 0; r < orders_.size(); ++r)
      if (orders_[r].empty())
        diagnostics_.error({origin_, static_cast<int>(r) + 1, 1},
                           fmt::format("rank {} has no action; expected a line for each rank, and "
                                       "stages on every rank",
                                       r));
    for (std::uint32_t s = 0; s < stages_; ++s) {
      if (!ranks_.contains(s))
        return diagnostics_.error(
            last_stage_.where,
            fmt::format("`{}` makes {} stages, and no rank runs stage {}; expected all of them",
                        last_stage_.name, stages_, s));
      for (std::uint32_t k = 0; k < microbatches_ && require_microbatch(s, k);) ++k;
    }
    if (!diagnostics_.has_errors() && stages_ % orders_.size() != 0)
      diagnostics_.error({origin_, 1, 1},
                         fmt::format("{} stages on {} ranks; expected a multiple of the ranks",
                                     stages_, orders_.size()));
  }

  /// A stage has a forward, and a backward or both of its halves, for every microbatch. Where there
  /// is nothing of a microbatch, as likely there is nothing of those after it, and no more is said.
  bool require_microbatch(std::uint32_t s, std::uint32_t k) {
    const bool forward = has(Kind::forward, s, k), whole = has(Kind::backward, s, k),
               input = has(Kind::backward_input, s, k), weight = has(Kind::backward_weight, s, k);
    if (!forward && !whole && !input && !weight) {
      report_nothing(s, k);
      return false;
    }
    if (!forward)
      report({whole   ? Kind::backward
              : input ? Kind::backward_input
                      : Kind::backward_weight,
              s, k},
             fmt::format("without `{}`", name_of({Kind::forward, s, k})));
    if (!whole && !input && !weight)
      report({Kind::forward, s, k},
             fmt::format("without a backward; expected `{}`, or `{}` and `{}`",
                         name_of({Kind::backward, s, k}), name_of({Kind::backward_input, s, k}),
                         name_of({Kind::backward_weight, s, k})));
    for (const auto& [half, other] : {std::pair(Kind::backward_input, Kind::backward_weight),
                                      std::pair(Kind::backward_weight, Kind::backward_input)}) {
      if (!has(half, s, k)) continue;
      if (whole)
        report({half, s, k}, fmt::format("beside `{}`; expected one B, or one each of I and W",
                                         name_of({Kind::backward, s, k})));
      else if (!has(other, s, k))
        report({half, s, k}, fmt::format("without `{}`", name_of({other, s, k})));
    }
    return true;
  }

  bool has(Kind kind, std::uint32_t s, std::uint32_t k) const {
    return places_.contains({kind, s, k});
  }

  void report(const Task& task, const std::string& what) {
    diagnostics_.error(places_.at(key_of(task)).where,
                       fmt::format("`{}` is there {}", name_of(task), what));
  }

  void report_nothing(std::uint32_t s, std::uint32_t k) {
    const std::uint32_t rank = ranks_.at(s);
    diagnostics_.error(
        {origin_, static_cast<int>(rank) + 1, 1},
        fmt::format("rank {} runs nothing of stage {} for microbatch {}, and `{}` ({}) makes {} "
                    "microbatches; expected one F, and one B or one each of I and W",
                    rank, s, k, last_microbatch_.name, place_of(last_microbatch_.where),
                    microbatches_));
  }

  /// In a file with messages nothing is left to derive: neighbouring stages on different ranks send
  /// and receive what the one makes and the other reads, others do not. The first of each kind that
  /// is wrong is enough.
  void require_messages() {
    if (!empty_.empty())
      diagnostics_.error(empty_.front(),
                         "an empty cell in a schedule with messages; expected an action");
    const auto moves = [&](Kind kind, std::uint32_t s) {
      const bool on = kind == Kind::send_output || kind == Kind::await_gradient;
      return on ? s + 1 < stages_ && ranks_.at(s) != ranks_.at(s + 1)
                : s > 0 && ranks_.at(s) != ranks_.at(s - 1);
    };
    for (const auto& [key, place] : places_) {
      const auto [kind, s, k] = key;
      if (is_message(kind) && !moves(kind, s)) {
        diagnostics_.error(place.where,
                           fmt::format("`{}` crosses no ranks", name_of({kind, s, k})));
        break;
      }
    }
    const auto missing = [&]() -> std::optional<Task> {
      for (const Kind kind :
           {Kind::send_output, Kind::send_gradient, Kind::await_input, Kind::await_gradient})
        for (std::uint32_t s = 0; s < stages_; ++s)
          for (std::uint32_t k = 0; moves(kind, s) && k < microbatches_; ++k)
            if (!places_.contains({kind, s, k})) return Task{kind, s, k};
      return std::nullopt;
    }();
    if (missing) {
      const Place& user = user_of(*missing);
      diagnostics_.error(
          user.where,
          fmt::format(
              "`{}` needs `{}`, which is not there; a schedule with messages has all of them",
              name_of(orders_[user.rank][user.index]), name_of(*missing)));
    }
    require_shards();
  }

  /// What makes the value that is sent, or reads the one that is received.
  const Place& user_of(const Task& message) const {
    const bool forward = message.kind == Kind::send_output || message.kind == Kind::await_input;
    return forward ? places_.at({Kind::forward, message.slot, message.microbatch})
                   : backward(message.slot, message.microbatch);
  }

  /// The parameters of a stage that are ever gathered are there where the stage runs; gradients are
  /// reduced after the last of them.
  void require_shards() {
    std::map<std::uint32_t, bool> gathered;
    std::size_t next = 0;
    const auto switch_to = [&](const ShardAction& it) {
      if (!ranks_.contains(it.stage) || ranks_.at(it.stage) != it.rank)
        return diagnostics_.error(it.where,
                                  fmt::format("stage {} is not on rank {}", it.stage, it.rank));
      if (it.type == "REDUCE_GRAD") return require_reduced_last(it);
      bool& now = gathered[it.stage];
      if (now == (it.type == "UNSHARD"))
        diagnostics_.error(it.where, fmt::format("stage {} is {} already", it.stage,
                                                 now ? "gathered" : "not gathered"));
      now = it.type == "UNSHARD";
    };
    const auto uses = [&](std::uint32_t stage) {
      return std::ranges::any_of(shards_, [&](const ShardAction& it) {
        return it.stage == stage && it.type == "UNSHARD";
      });
    };
    for (std::size_t r = 0; r < orders_.size(); ++r)
      for (std::size_t i = 0; i <= orders_[r].size(); ++i) {
        for (; next < shards_.size() && shards_[next].rank == r && shards_[next].index == i; ++next)
          switch_to(shards_[next]);
        if (i == orders_[r].size() || is_message(orders_[r][i].kind)) continue;
        const Task& task = orders_[r][i];
        if (!gathered[task.slot] && uses(task.slot)) {
          diagnostics_.error(places_.at(key_of(task)).where,
                             fmt::format("`{}` runs where the parameters of stage {} are not "
                                         "gathered; expected `{}UNSHARD` before it",
                                         name_of(task), task.slot, task.slot));
          return;
        }
      }
  }

  struct ShardAction {
    std::uint32_t stage = 0;
    std::string type;
    std::size_t rank = 0, index = 0;  ///< before which task of the rank
    Location where;
  };

  void require_reduced_last(const ShardAction& it) {
    const std::vector<Task>& order = orders_[it.rank];
    for (std::size_t i = it.index; i < order.size(); ++i)
      if (order[i].slot == it.stage &&
          (order[i].kind == Kind::backward || order[i].kind == Kind::backward_weight))
        return diagnostics_.error(it.where, fmt::format("`{}` adds to the gradients of stage {} "
                                                        "after they are reduced",
                                                        name_of(order[i]), it.stage));
  }

  /// The place of the backward, or of its input half.
  const Place& backward(std::uint32_t slot, std::uint32_t microbatch) const {
    const auto found = places_.find({Kind::backward, slot, microbatch});
    return found != places_.end() ? found->second
                                  : places_.at({Kind::backward_input, slot, microbatch});
  }

  std::vector<Place> inputs(const Task& task) const {
    const std::uint32_t s = task.slot, k = task.microbatch;
    switch (task.kind) {
      case Kind::backward_weight:
      case Kind::send_gradient:
        return {backward(s, k)};
      case Kind::send_output:
        return {places_.at({Kind::forward, s, k})};
      case Kind::await_input:
        return {places_.at({Kind::send_output, s - 1, k})};
      case Kind::await_gradient:
        return {places_.at({Kind::send_gradient, s + 1, k})};
      case Kind::forward:
        if (s == 0) return {};
        if (is_received(s, s - 1)) return {places_.at({Kind::await_input, s, k})};
        return {places_.at({Kind::forward, s - 1, k})};
      default:
        break;
    }
    std::vector<Place> before{places_.at({Kind::forward, s, k})};
    if (s + 1 < stages_)
      before.push_back(is_received(s, s + 1) ? places_.at({Kind::await_gradient, s, k})
                                             : backward(s + 1, k));
    return before;
  }

  bool is_received(std::uint32_t stage, std::uint32_t from) const {
    return has_messages_ && ranks_.at(stage) != ranks_.at(from);
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
  struct Cell {
    std::string name;
    Location where;
  };

  std::uint32_t stages_ = 0, microbatches_ = 0;
  Cell last_stage_, last_microbatch_;  ///< the first with the greatest number
  std::vector<ShardAction> shards_;    ///< by rank, in order
  std::vector<Location> empty_;
  bool has_messages_ = false;
};

}  // namespace

CsvSchedule parse_schedule_csv(const std::string& text, const std::string& origin) {
  return CsvReader(origin).read(text);
}

CsvSchedule read_schedule_csv(const std::filesystem::path& path) {
  const Location where{path.string(), 0, 0};
  std::error_code error;
  if (!std::filesystem::exists(path, error)) refuse(where, "there is no such file");
  if (!std::filesystem::is_regular_file(path, error))
    refuse(where, "is a folder or a device; expected a file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMostBytes) refuse(where, "is not a file of at most 32 MiB");
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (!file) refuse(where, "cannot be read to its end");
  return parse_schedule_csv(text, where.origin);
}

}  // namespace plimsoll
