#include "policy/offload/search/branch_and_bound.hpp"

#include <algorithm>
#include <unordered_map>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

/// A beginning is copied and played for each action that may follow: by stage, about so many steps.
constexpr std::size_t kStepsANode = 32;

enum class Whereabouts : std::uint8_t { home, out, back };

/// What copies out may stand here: none, the one of the forward just issued, or, since that one has
/// been, those of stages before it; behind a copy back any, where storage is short.
enum class Batch : std::uint8_t { closed, own, earlier, any };

struct Beginning {
  OffloadPlay play;
  std::size_t operations = 0;
  std::vector<Whereabouts> places;  ///< by candidate
  Batch batch = Batch::closed;
};

class Search {
 public:
  Search(const OffloadModel& model, const std::optional<OffloadSet>& set, Time bound,
         const SearchLimits& limits)
      : model_(model),
        may_move_(set ? *set : everything(model)),
        must_move_(set.has_value()),
        bound_(bound),
        limits_(limits),
        storage_is_short_(!model.storage.is_unlimited()),
        left_(2 * model.stages.size() + 1) {
    const std::size_t stages = model.stages.size();
    left_.back() = model.optimizer;
    for (std::size_t k = 2 * stages; k-- > 0;)
      left_[k] = left_[k + 1] +
                 (k < stages ? model.stages[k].forward : model.stages[2 * stages - 1 - k].backward);
    // An operation that allocates nothing starts without a grant: then beginnings are not compared.
    for (const OffloadStage& stage : model.stages)
      comparable_ &= stage.moved + stage.passing + stage.forward_workspace > Bytes{} &&
                     stage.gradient > Bytes{};
    comparable_ &= model.input_gradient > Bytes{} ||
                   model.stages.front().backward_workspace + model.stages.front().lasting > Bytes{};
  }

  BestSchedule run(std::vector<Timed> known) {
    for (Timed& it : known)
      if (!best_ || it.makespan < best_->makespan) best_ = std::move(it);
    if (!is_done()) {
      Beginning root{OffloadPlay(model_), 0, std::vector(model_.candidates, Whereabouts::home)};
      extend(root);
    }
    return {std::move(best_), !gave_up_, nodes_};
  }

 private:
  [[nodiscard]] bool is_done() const { return gave_up_ || (best_ && best_->makespan <= bound_); }
  [[nodiscard]] std::size_t stages() const { return model_.stages.size(); }

  void extend(const Beginning& it) {
    if (is_done()) return;
    if (++nodes_ > limits_.nodes) {
      gave_up_ = true;
      return;
    }
    model_.work.add(kStepsANode * stages());
    if (best_ && at_least(it) >= best_->makespan) return;
    if (it.operations == 2 * stages()) return finish(it);
    if (comparable_ && is_superfluous(it)) return;
    copy_out(it);
    operate(it);
    copy_back(it);
  }

  void finish(const Beginning& it) {
    if (must_move_ && has_left_one_behind(it)) return;
    OffloadPlay play = it.play;
    if (const auto end = play.end(); end && (!best_ || *end < best_->makespan))
      best_ = Timed{sequence_, *end};
  }

  void descend(const Beginning& next, Kind kind, std::size_t stage) {
    sequence_.push_back({kind, static_cast<std::uint32_t>(stage)});
    extend(next);
    sequence_.pop_back();
  }

  void copy_out(const Beginning& it) {
    if (it.batch == Batch::closed) return;
    const std::size_t own = it.play.forwards() - 1;
    const std::size_t from = it.batch == Batch::own ? own : 0;
    const std::size_t to = it.batch == Batch::earlier ? own : own + 1;
    for (std::size_t s = from; s < std::min(to, model_.candidates); ++s) {
      if (it.places[s] != Whereabouts::home || !may_move_[s] || is_read_back(it, s)) continue;
      Beginning next = it;
      if (!next.play.out(s)) continue;
      next.places[s] = Whereabouts::out;
      if (it.batch != Batch::any) next.batch = Batch::earlier;
      descend(next, Kind::out, s);
    }
  }

  void operate(const Beginning& it) {
    const bool is_forward = it.operations < stages();
    const std::size_t s = is_forward ? it.operations : 2 * stages() - 1 - it.operations;
    if (!is_forward && (is_away(it, s) || (s > 0 && is_away(it, s - 1)))) return;
    // The last chance to send what must move has passed.
    if (is_forward && s >= model_.candidates && must_move_ && !storage_is_short_ &&
        has_left_one_behind(it))
      return;
    Beginning next = it;
    if (!(is_forward ? next.play.forward() : next.play.backward())) return;
    ++next.operations;
    next.batch = is_forward && s < model_.candidates ? Batch::own : Batch::closed;
    descend(next, is_forward ? Kind::forward : Kind::backward, s);
  }

  void copy_back(const Beginning& it) {
    for (std::size_t s = model_.candidates; s-- > 0;) {
      if (!is_away(it, s) || it.play.forwards() < s + 2) continue;
      Beginning next = it;
      if (!next.play.in(s)) continue;
      next.places[s] = Whereabouts::back;
      next.batch = storage_is_short_ ? Batch::any : Batch::closed;
      descend(next, Kind::in, s);
    }
  }

  [[nodiscard]] bool is_away(const Beginning& it, std::size_t s) const {
    return s < model_.candidates && it.places[s] == Whereabouts::out;
  }

  /// Whether the backward behind `s`, which reads it, has been issued.
  [[nodiscard]] bool is_read_back(const Beginning& it, std::size_t s) const {
    return it.operations > 2 * stages() - 2 - s;
  }

  [[nodiscard]] bool has_left_one_behind(const Beginning& it) const {
    for (std::size_t s = 0; s < model_.candidates; ++s)
      if (may_move_[s] && it.places[s] == Whereabouts::home) return true;
    return false;
  }

  /// A bound from the operations left, and from the copies back left: that of stage s, with those
  /// of the stages behind it, comes before backward s+1.
  [[nodiscard]] Time at_least(const Beginning& it) const {
    Time least = it.play.stream_free().time + left_[it.operations];
    Time copies = it.play.in_free().time;
    for (std::size_t s = model_.candidates; s-- > 0;) {
      if (it.places[s] != Whereabouts::out) continue;
      copies += model_.stages[s].in;
      least = std::max(least, copies + left_[2 * stages() - 2 - s]);
    }
    return least;
  }

  [[nodiscard]] std::uint64_t actions_of(const Beginning& it) const {
    std::uint64_t key = it.operations;
    key = key * 4 + static_cast<std::uint64_t>(it.batch);
    for (const Whereabouts place : it.places) key = key * 3 + static_cast<std::uint64_t>(place);
    return key;
  }

  [[nodiscard]] std::vector<Moment> times_of(const Beginning& it) const {
    const OffloadPlay& play = it.play;
    std::vector<Moment> times{play.stream_free(), play.last_grant(), play.out_free(),
                              play.in_free()};
    for (std::size_t s = 0; s < model_.candidates; ++s) {
      if (it.places[s] == Whereabouts::out) times.push_back(play.out_end(s));
      if (it.places[s] == Whereabouts::back) times.push_back(play.back(s));
    }
    return times;
  }

  bool is_superfluous(const Beginning& it) {
    const std::vector<Moment> times = times_of(it);
    auto& known = known_[actions_of(it)];
    for (const std::vector<Moment>& other : known)
      if (std::ranges::equal(other, times, std::less_equal<>{})) return true;
    remembered_ -= std::erase_if(known, [&](const std::vector<Moment>& other) {
      return std::ranges::equal(times, other, std::less_equal<>{});
    });
    if (remembered_ < limits_.remembered) {
      known.push_back(times);
      ++remembered_;
    }
    return false;
  }

  const OffloadModel& model_;
  const OffloadSet may_move_;
  const bool must_move_;
  const Time bound_;
  const SearchLimits limits_;
  const bool storage_is_short_;
  std::vector<Time> left_;  ///< by operation: from its start, if nothing waits
  bool comparable_ = true;
  OffloadSequence sequence_;
  std::optional<Timed> best_;
  std::unordered_map<std::uint64_t, std::vector<std::vector<Moment>>> known_;  // only looked up
  std::size_t nodes_ = 0, remembered_ = 0;
  bool gave_up_ = false;
};

}  // namespace

BestSchedule best_schedule(const OffloadModel& model, const std::optional<OffloadSet>& set,
                           std::vector<Timed> known, Time bound, const SearchLimits& limits) {
  return Search(model, set, bound, limits).run(std::move(known));
}

}  // namespace plimsoll
