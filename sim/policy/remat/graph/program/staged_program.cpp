#include "policy/remat/graph/program/staged_program.hpp"

#include <algorithm>
#include <set>

namespace plimsoll {

void LinearSum::add(const LinearSum& other, std::int64_t times) {
  constant += times * other.constant;
  for (const auto& [column, factor] : other.terms) {
    const auto same = std::ranges::find(terms, column, &std::pair<int, std::int64_t>::first);
    if (same == terms.end())
      terms.emplace_back(column, times * factor);
    else
      same->second += times * factor;
  }
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
}

namespace {

constexpr std::uint32_t kNoValue = OperatorGraph::kNone;

LinearSum whole_sum(std::int64_t value) {
  return {.constant = value};
}

}  // namespace

class StagedProgramBuilder {
 public:
  StagedProgramBuilder(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room,
                       const std::optional<std::vector<Rerun>>& only, const StagedCopies* copies,
                       StagedProgram& program)
      : graph_(graph),
        groups_(groups),
        room_(room),
        only_(only),
        copies_(copies),
        once_(graph, groups, room),
        program_(program),
        carried_(graph.values.size()),
        next_(graph.values.size()),
        back_(graph.values.size()),
        gone_(graph.values.size()),
        generator_(graph.nodes.size()),
        next_generator_(graph.nodes.size()),
        kept_(graph.nodes.size()) {
    find_forms();
    find_reach();
    for (const OperatorGraph::Value& value : graph.values)
      program_.byte_unit_ = std::max(program_.byte_unit_, value.bytes.count());
  }

  void build() {
    for (stage_ = 0; stage_ < graph_.nodes.size(); ++stage_) build_stage();
    if (copies_ == nullptr) return;
    limit_storage();
    limit_time();
  }

 private:
  using Value = OperatorGraph::Value;

  // What follows from the graph alone.

  [[nodiscard]] std::uint32_t group_of(const Value& value) const {
    return groups_.of_node[value.maker];
  }

  void find_forms() {
    has_forms_.assign(graph_.nodes.size(), false);
    for (const Value& value : graph_.values)
      if (value.is_kept_only && value.bytes > Bytes{} && !value.readers.empty())
        has_forms_[value.maker] = true;
    values_of_group_.assign(groups_.groups.size(), 0);
    readers_.resize(graph_.values.size());
    parts_.resize(graph_.values.size());
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      for (const std::uint32_t reader : value.readers) readers_[source(v)].push_back(reader);
      if (is_alone(v)) ++values_of_group_[group_of(value)];
      if (is_part(v) && is_alone(v)) parts_[value.inside].push_back(v);
    }
    for (std::vector<std::uint32_t>& readers : readers_) {
      std::ranges::sort(readers);
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    }
  }

  /// The value whose bytes a value is in wherever it is: itself, but for parts that only the form
  /// `keep` leaves.
  [[nodiscard]] std::uint32_t source(std::uint32_t v) const {
    const Value& value = graph_.values[v];
    return value.is_kept_only && value.inside != kNoValue ? value.inside : v;
  }
  /// Whether a value of two forms: own bytes in the one, part of `inside` in the other.
  [[nodiscard]] bool is_part(std::uint32_t v) const {
    const Value& value = graph_.values[v];
    return has_forms_[value.maker] && value.inside != kNoValue && !value.is_kept_only;
  }
  [[nodiscard]] bool is_kept_only(std::uint32_t v) const {
    return has_forms_[graph_.values[v].maker] && graph_.values[v].is_kept_only;
  }
  /// Whether the program follows the value: it takes bytes, or asks for the form `keep`.
  [[nodiscard]] bool is_alone(std::uint32_t v) const {
    const Value& value = graph_.values[v];
    if (source(v) != v) return false;
    if (value.is_kept_only) return has_forms_[value.maker];
    return value.bytes > Bytes{};
  }

  /// The last stage in which a run of a group is of use, and one into which a value is carried.
  void find_reach() {
    reach_.assign(groups_.groups.size(), 0);
    until_.assign(graph_.values.size(), 0);
    const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (std::uint32_t v = static_cast<std::uint32_t>(graph_.values.size()); v-- > 0;) {
        const Value& value = graph_.values[v];
        std::uint32_t last = value.stays ? nodes : 0;
        if (value.held_until != kNoValue) last = std::max(last, value.held_until);
        for (const std::uint32_t reader : value.readers) {
          last = std::max(last, reader);
          const std::uint32_t group = groups_.of_node[reader];
          if (!groups_.groups[group].runs_once) last = std::max(last, reach_[group]);
        }
        std::uint32_t& until = until_[source(v)];
        std::uint32_t& reach = reach_[group_of(value)];
        is_changed = is_changed || last > until || last > reach;
        until = std::max(until, last);
        reach = std::max(reach, last);
        // What is a part is there while its whole is, and the other way round.
        if (value.inside != kNoValue)
          until_[value.inside] = until = std::max(until, until_[value.inside]);
      }
    }
  }

  // Columns and rows.

  LinearSum new_column(const StagedProgram::Column& column) {
    program_.columns_.push_back(column);
    return {.terms = {{static_cast<int>(program_.columns_.size()) - 1, 1}}};
  }

  /// The sum is at least or at most zero.
  void add_row(LinearSum sum, bool is_least, bool is_most, bool is_of_bytes = false) {
    if (sum.is_constant()) return;
    StagedProgram::Row row{.terms = std::move(sum.terms), .is_of_bytes = is_of_bytes};
    if (is_least) row.least = -sum.constant;
    if (is_most) row.most = -sum.constant;
    program_.rows_.push_back(std::move(row));
  }
  /// `more` >= `less`.
  void order(LinearSum more, const LinearSum& less) {
    more.add(less, -1);
    if (more.terms.empty()) return;
    add_row(std::move(more), true, false);
  }

  [[nodiscard]] std::int64_t most_of(const LinearSum& sum) const {
    std::int64_t most = sum.constant;
    for (const auto& [column, factor] : sum.terms)
      if (factor > 0)
        most += static_cast<std::int64_t>(static_cast<double>(factor) *
                                          program_.columns_[static_cast<std::size_t>(column)].most);
    return most;
  }

  // A stage.

  [[nodiscard]] bool may_run_again(std::uint32_t stage, std::uint32_t group) const {
    if (stage > reach_[group] || !once_.may_run({stage, group})) return false;
    if (only_ && !std::ranges::binary_search(*only_, Rerun{stage, group})) return false;
    return std::ranges::none_of(groups_.groups[group].nodes, [&](std::uint32_t node) {
      return std::ranges::any_of(graph_.nodes[node].makes, [&](std::uint32_t v) {
        return graph_.values[v].held_until != kNoValue && stage <= graph_.values[v].held_until;
      });
    });
  }

  /// Whether the value may come back as the stage begins.
  [[nodiscard]] bool may_return(std::uint32_t stage, std::uint32_t v) const {
    const std::uint32_t group = groups_.return_of(v);
    if (copies_ == nullptr || group == OperatorGraph::kNone || stage > until_[v]) return false;
    if (!once_.may_run({stage, group})) return false;
    return !only_ || std::ranges::binary_search(*only_, Rerun{stage, group});
  }

  void build_stage() {
    add_runs();
    add_returns();
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
      if (is_alone(v)) next_[v] = carried_into(stage_ + 1, v);
    add_reads();
    add_flow();
    add_generators();
    if (most_in_stage() > room_) StageBytes(*this).add();
    carried_ = next_;
    generator_ = next_generator_;
  }

  /// The state of a generator is carried from its node's own stage into the last in which that runs
  /// again.
  void add_generators() {
    for (std::uint32_t node = 0; node <= stage_; ++node) {
      const std::uint32_t group = groups_.of_node[node];
      if (graph_.nodes[node].generator == Bytes{} || groups_.groups[group].runs_once) continue;
      LinearSum& next = next_generator_[node];
      if (stage_ >= reach_[group]) {
        next = {};
      } else if (node == stage_) {
        next = new_column({});
      } else if (!again_[group].is(0)) {
        next = new_column({});
        order(generator_[node], next);
      }
      order(generator_[node], node == stage_ ? LinearSum{} : again_[group]);
    }
  }

  void add_runs() {
    again_.assign(groups_.groups.size(), {});
    steps_.clear();
    for (std::uint32_t node = 0; node < stage_; ++node) {
      const std::uint32_t group = groups_.of_node[node];
      if (!may_run_again(stage_, group)) continue;
      if (again_[group].is_constant()) {
        again_[group] = new_column({.is_branched = true, .time = groups_.groups[group].time});
        program_.rerun_columns_.push_back({{stage_, group}, again_[group].terms.front().first});
      }
      steps_.push_back(node);
    }
    for (std::uint32_t node = 0; node <= stage_; ++node) {
      kept_[node] = {};
      if (!has_forms_[node] || runs(node).is(0)) continue;
      kept_[node] = new_column({.is_branched = true});
      order(runs(node), kept_[node]);
    }
  }

  void add_returns() {
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      back_[v] = {};
      if (!is_alone(v) || !may_return(stage_, v)) continue;
      const std::uint32_t group = groups_.return_of(v);
      back_[v] = new_column({.is_branched = true, .time = groups_.groups[group].time});
      program_.rerun_columns_.push_back({{stage_, group}, back_[v].terms.front().first});
      if (gone_[v].is_constant()) gone_[v] = new_column({.time = copies_->outs[v]});
      order(gone_[v], back_[v]);
    }
  }

  void limit_storage() {
    LinearSum sum;
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
      sum.add(gone_[v], graph_.values[v].bytes.count());
    if (copies_->storage.is_unlimited() || most_of(sum) <= copies_->storage.count()) return;
    sum.constant = -copies_->storage.count();
    add_row(std::move(sum), false, true, true);
  }

  void limit_time() {
    if (!copies_->most_time) return;
    LinearSum sum;
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
      sum.add(gone_[v], copies_->out_times[v]);
    for (const auto& [rerun, column] : program_.rerun_columns_)
      sum.terms.emplace_back(column, copies_->again_times[rerun.group]);
    if (most_of(sum) <= *copies_->most_time) return;
    sum.constant = -*copies_->most_time;
    add_row(std::move(sum), false, true);
    program_.rows_.back().unit = std::max<std::int64_t>(1, *copies_->most_time / 1000);
  }

  [[nodiscard]] LinearSum runs(std::uint32_t node) const {
    if (node == stage_) return whole_sum(1);
    return node < stage_ ? again_[groups_.of_node[node]] : LinearSum{};
  }
  /// Whether this stage makes the value in its own bytes.
  [[nodiscard]] LinearSum made(std::uint32_t v) const {
    const std::uint32_t maker = graph_.values[v].maker;
    if (is_kept_only(v)) return kept_[maker];
    LinearSum sum = runs(maker);
    if (is_part(v)) sum.add(kept_[maker], -1);
    return sum;
  }
  /// What is there as the stage begins.
  [[nodiscard]] LinearSum brought(std::uint32_t v) const {
    LinearSum sum = carried_[v];
    sum.add(back_[v]);
    return sum;
  }
  [[nodiscard]] LinearSum there(std::uint32_t v) const {
    LinearSum sum = brought(v);
    sum.add(made(v));
    return sum;
  }
  /// Where a reader finds it: in its own bytes or in what it is a part of.
  [[nodiscard]] LinearSum readable(std::uint32_t v) const {
    LinearSum sum = there(source(v));
    if (is_part(v)) sum.add(there(graph_.values[v].inside));
    return sum;
  }
  [[nodiscard]] bool is_followed(std::uint32_t v) const { return is_alone(source(v)); }
  [[nodiscard]] bool is_held(std::uint32_t v) const {
    const Value& value = graph_.values[v];
    return value.held_until != kNoValue && stage_ <= value.held_until;
  }

  /// No run of its maker lies between the stage and the next first run that reads it.
  [[nodiscard]] bool has_to_be_carried(std::uint32_t stage, std::uint32_t v) const {
    const Value& value = graph_.values[v];
    if (value.held_until != kNoValue && stage <= value.held_until) return true;
    if (has_forms_[value.maker] && value.inside != kNoValue) return false;
    const auto nodes = static_cast<std::uint32_t>(graph_.nodes.size());
    const std::vector<std::uint32_t>& readers = readers_[v];
    const auto next = std::ranges::lower_bound(readers, stage);
    if (next == readers.end() && !value.stays) return false;
    const std::uint32_t use = next == readers.end() ? nodes : *next;
    for (std::uint32_t at = stage; at <= use && at < nodes; ++at)
      if (may_run_again(at, group_of(value)) || may_return(at, v)) return false;
    return true;
  }

  LinearSum carried_into(std::uint32_t stage, std::uint32_t v) {
    const Value& value = graph_.values[v];
    if (stage <= value.maker || stage > until_[v]) return {};
    if (has_to_be_carried(stage, v)) {
      program_.carried_columns_.push_back({stage, v, StagedProgram::kAlways});
      return whole_sum(1);
    }
    if (stage == graph_.nodes.size()) return whole_sum(value.stays ? 1 : 0);
    LinearSum column = new_column({});
    program_.carried_columns_.push_back({stage, v, column.terms.front().first});
    return column;
  }

  void add_reads() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> done;
    for (const std::uint32_t node : steps_) {
      const std::uint32_t group = groups_.of_node[node];
      for (const std::uint32_t v : graph_.nodes[node].reads)
        if (is_followed(v) && done.emplace(group, v).second) order(readable(v), runs(node));
    }
    for (const std::uint32_t v : graph_.nodes[stage_].reads)
      if (is_followed(v)) order(readable(v), whole_sum(1));
  }

  void add_flow() {
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      if (!is_alone(v)) continue;
      order(there(v), next_[v]);
      const int ways =
          (carried_[v].is(0) ? 0 : 1) + (made(v).is(0) ? 0 : 1) + (back_[v].is(0) ? 0 : 1);
      if (ways > 1) order(whole_sum(1), there(v));
    }
  }

  [[nodiscard]] std::int64_t most_in_stage() const {
    std::int64_t most = 0, workspace = 0;
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
      if (is_alone(v) && !there(v).is(0)) most += graph_.values[v].bytes.count();
    for (std::uint32_t node = 0; node <= stage_; ++node)
      if (has_generator(node)) most += graph_.nodes[node].generator.count();
    const auto add = [&](std::uint32_t node) {
      workspace = std::max(workspace, graph_.nodes[node].workspace.count());
    };
    std::ranges::for_each(steps_, add);
    add(stage_);
    return most + workspace;
  }

  /// Whether the state of the node's generator may be there in the stage.
  [[nodiscard]] bool has_generator(std::uint32_t node) const {
    return !generator_[node].is(0) || !next_generator_[node].is(0);
  }

  /// The rows of bytes of a stage.
  class StageBytes {
   public:
    explicit StageBytes(StagedProgramBuilder& of)
        : of_(of),
          alive_(of.graph_.values.size()),
          needs_(of.graph_.values.size()),
          passed_(of.graph_.values.size(), 0),
          read_by_(of.graph_.nodes.size()) {}

    void add() {
      for (std::uint32_t v = 0; v < of_.graph_.values.size(); ++v) {
        if (!is_there(v)) continue;
        if (!of_.parts_[v].empty())
          find_needs_with_parts(v);
        else if (!of_.is_part(v))
          find_needs(v);
        set_alive(v, of_.brought(v));
      }
      for (std::uint32_t node = 0; node < of_.stage_; ++node)
        change(LinearSum{}, of_.generator_[node], of_.graph_.nodes[node].generator.count());
      for (const std::uint32_t node : of_.steps_) add_step(node);
      add_last();
    }

   private:
    [[nodiscard]] std::int64_t bytes(std::uint32_t v) const {
      return of_.graph_.values[v].bytes.count();
    }
    [[nodiscard]] bool is_there(std::uint32_t v) const {
      return of_.is_alone(v) && !of_.there(v).is(0);
    }

    /// Runs of this stage, before its last, that read the value.
    [[nodiscard]] std::vector<std::uint32_t> readers(std::uint32_t v) const {
      std::vector<std::uint32_t> readers;
      for (const std::uint32_t reader : of_.readers_[v])
        if (reader < of_.stage_ && !of_.runs(reader).is(0)) readers.push_back(reader);
      return readers;
    }
    [[nodiscard]] bool reads(std::uint32_t node, std::uint32_t v) const {
      return std::ranges::binary_search(of_.readers_[v], node);
    }
    [[nodiscard]] bool is_read_last(std::uint32_t v) const {
      return of_.is_held(v) || reads(of_.stage_, v);
    }

    /// needs_[v][a]: from behind the reader before number a on to that reader.
    void find_needs(std::uint32_t v) {
      const std::vector<std::uint32_t> at = readers(v);
      std::vector<LinearSum>& needs = needs_[v];
      needs.assign(at.size() + 1, {});
      needs[at.size()] = is_read_last(v) ? whole_sum(1) : of_.next_[v];
      for (std::size_t a = at.size(); a-- > 0;) {
        needs[a] = need(needs[a + 1], of_.runs(at[a]));
        read_by_[at[a]].push_back(v);
      }
      // Its maker made it, or it was carried, because somebody needs it.
      const bool has_one_reason = of_.made(v).is(0) || is_only_value(v);
      if (has_one_reason && !is_read_last(v)) needs.front() = of_.there(v);
    }
    [[nodiscard]] bool is_only_value(std::uint32_t v) const {
      return of_.values_of_group_[of_.group_of(of_.graph_.values[v])] == 1;
    }

    LinearSum need(const LinearSum& later, const LinearSum& reader) {
      if (later.is(1)) return later;
      if (later.is(0)) return reader;
      if (later.terms == reader.terms) return later;
      LinearSum column = of_.new_column({});
      of_.order(column, reader);
      of_.order(column, later);
      return column;
    }

    /// Whoever reads a part finds it in its own bytes or in the whole.
    void find_needs_with_parts(std::uint32_t whole) {
      std::vector<std::uint32_t> family{whole}, at = readers(whole);
      for (const std::uint32_t part : of_.parts_[whole]) {
        if (!is_there(part)) continue;
        family.push_back(part);
        std::ranges::copy(readers(part), std::back_inserter(at));
      }
      std::ranges::sort(at);
      at.erase(std::unique(at.begin(), at.end()), at.end());
      for (const std::uint32_t v : family) needs_[v].assign(at.size() + 1, {});
      for (std::size_t a = at.size() + 1; a-- > 0;) {
        const std::uint32_t reader = a == at.size() ? of_.stage_ : at[a];
        for (const std::uint32_t v : family) {
          const LinearSum& later = a == at.size() ? of_.next_[v] : needs_[v][a + 1];
          needs_[v][a] = of_.new_column({});
          of_.order(needs_[v][a], later);
          LinearSum source = needs_[v][a];
          if (v != whole) source.add(needs_[whole][a]);
          if (reads(reader, v)) of_.order(source, of_.runs(reader));
          if (a < at.size()) read_by_[reader].push_back(v);
        }
      }
      for (const std::uint32_t v : family) of_.order(of_.there(v), needs_[v].front());
    }

    void set_alive(std::uint32_t v, const LinearSum& sum) {
      change(alive_[v], sum, bytes(v));
      alive_[v] = sum;
    }
    void change(const LinearSum& before, const LinearSum& after, std::int64_t bytes) {
      current_.add(before, -bytes);
      current_.add(after, bytes);
      most_ += (of_.most_of(after) - of_.most_of(before)) * bytes;
    }

    void add_step(std::uint32_t node) {
      const std::vector<std::uint32_t>& makes = of_.graph_.nodes[node].makes;
      for (const std::uint32_t v : makes)
        if (is_there(v)) set_alive(v, of_.there(v));
      const std::int64_t workspace = of_.graph_.nodes[node].workspace.count();
      current_.add(of_.runs(node), workspace);
      if (most_ + workspace > of_.room_) limit();
      current_.add(of_.runs(node), -workspace);
      for (const std::uint32_t v : makes)
        if (is_there(v)) set_alive(v, needs_[v].front());
      for (const std::uint32_t v : read_by_[node]) set_alive(v, needs_[v][++passed_[v]]);
      change(of_.generator_[node], of_.next_generator_[node],
             of_.graph_.nodes[node].generator.count());
    }

    /// What is there is within the room: a column stands for it from here on.
    void limit() {
      if (current_.is_constant()) {
        of_.program_.is_impossible_ = of_.program_.is_impossible_ || current_.constant > of_.room_;
        return;
      }
      const auto unit = of_.program_.byte_unit_;
      const LinearSum column = of_.new_column(
          {.most = static_cast<double>(of_.room_) / static_cast<double>(unit), .is_whole = false});
      current_.add(column, -unit);
      of_.add_row(std::move(current_), true, true, true);
      current_ = {};
      current_.add(column, unit);
    }

    /// The first run of the stage's own node: what it reads and makes, and what is carried on.
    void add_last() {
      LinearSum sum = whole_sum(of_.graph_.nodes[of_.stage_].workspace.count() - of_.room_);
      for (std::uint32_t v = 0; v < of_.graph_.values.size(); ++v) {
        if (!is_there(v)) continue;
        const bool is_own = of_.graph_.values[v].maker == of_.stage_;
        sum.add(is_own ? of_.made(v) : needs_[v].back(), bytes(v));
      }
      for (std::uint32_t node = 0; node <= of_.stage_; ++node)
        sum.add(of_.next_generator_[node], of_.graph_.nodes[node].generator.count());
      if (sum.is_constant())
        of_.program_.is_impossible_ = of_.program_.is_impossible_ || sum.constant > 0;
      else
        of_.add_row(std::move(sum), false, true, true);
    }

    StagedProgramBuilder& of_;
    std::vector<LinearSum> alive_;
    std::vector<std::vector<LinearSum>> needs_;
    std::vector<std::size_t> passed_;                  ///< readers, by value
    std::vector<std::vector<std::uint32_t>> read_by_;  ///< values, by node
    LinearSum current_;
    std::int64_t most_ = 0;
  };

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const std::int64_t room_;
  const std::optional<std::vector<Rerun>>& only_;
  const StagedCopies* const copies_;
  const StagedSchedule once_;
  StagedProgram& program_;
  std::vector<bool> has_forms_;                      ///< by node
  std::vector<std::size_t> values_of_group_;         ///< that are followed
  std::vector<std::vector<std::uint32_t>> readers_;  ///< by source
  std::vector<std::vector<std::uint32_t>> parts_;    ///< by what they are parts of
  std::vector<std::uint32_t> reach_, until_;
  // Of the stage:
  std::uint32_t stage_ = 0;
  std::vector<LinearSum> carried_, next_;  ///< by value
  std::vector<LinearSum> back_;            ///< by value: whether it comes back
  std::vector<LinearSum> gone_;            ///< by value, in all stages: whether it has left
  std::vector<LinearSum> generator_, next_generator_;  ///< by node, likewise of states
  std::vector<LinearSum> again_;                       ///< by group
  std::vector<LinearSum> kept_;                        ///< by node
  std::vector<std::uint32_t> steps_;  ///< nodes that may run before the last, ascending
};

std::optional<std::string> StagedProgram::refusal(const OperatorGraph& graph,
                                                  const RerunGroups& groups) {
  std::vector<bool> makes_more(groups.groups.size(), false);
  for (const OperatorGraph::Value& value : graph.values)
    if (value.held_until == kNoValue && value.bytes > Bytes{})
      makes_more[groups.of_node[value.maker]] = true;
  for (const OperatorGraph::Value& value : graph.values) {
    if (value.held_until != kNoValue && makes_more[groups.of_node[value.maker]])
      return "what is held until the last forward would be made again together with other values";
    if (value.inside == kNoValue) continue;
    const OperatorGraph::Value& whole = graph.values[value.inside];
    if (!whole.is_kept_only || whole.inside != kNoValue)
      return "a value is a part of another that is not only kept for backwards";
  }
  return std::nullopt;
}

StagedProgram::StagedProgram(const OperatorGraph& graph, const RerunGroups& groups,
                             std::int64_t room, const std::optional<std::vector<Rerun>>& only,
                             const StagedCopies* copies) {
  StagedProgramBuilder(graph, groups, room, only, copies, *this).build();
}

}  // namespace plimsoll
