#include "policy/remat/graph/rules/block_rematerialization.hpp"

#include "policy/graph/computations.hpp"
#include "policy/remat/graph/rules/run_list.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Of the operators: a sequence grows no longer than so many times their number.
constexpr std::size_t kMostRuns = 64;
/// Of Work, for each run of a sequence that is judged or looked at.
constexpr std::size_t kWorkOfLook = 64;

/// Consecutive instances, and what running them again would do now.
struct RunBlock {
  std::size_t begin = 0, end = 0;  ///< in RunList::done()
  std::int64_t cost = 0;
};

/// A block to which one instance after the other is added.
class GrowingBlock {
 public:
  GrowingBlock(const OperatorGraph& graph, const RerunGroups& groups, const RunList& runs)
      : graph_(graph), groups_(groups), runs_(runs) {}

  /// Whether a block may contain it.
  bool add(std::uint32_t instance) {
    if (groups_.groups[runs_[instance].group].runs_once || runs_[instance].is_denied) return false;
    has_moved_ = has_moved_ || runs_[instance].is_moved;
    for (const std::uint32_t copy : runs_.read(instance)) add_input(copy);
    for (const std::uint32_t copy : runs_.made(instance))
      if (!add_output(copy)) return false;
    return true;
  }

  /// Nothing where it frees nothing, or would move what has moved.
  [[nodiscard]] std::optional<std::int64_t> cost(std::int64_t room) const {
    if (freed_ <= 0) return std::nullopt;
    if (reads_before_ > 0) return room / freed_;
    if (has_moved_) return std::nullopt;
    return 0;
  }

 private:
  void add_input(std::uint32_t number) {
    const RunList::Copy& copy = runs_.copy(number);
    if (std::ranges::find(outputs_, number) != outputs_.end()) {
      --reads_before_;
      return;
    }
    if (copy.last_read >= runs_.place() || std::ranges::find(inputs_, number) != inputs_.end())
      return;
    inputs_.push_back(number);
    freed_ -= graph_.values[copy.value].bytes.count();
  }

  bool add_output(std::uint32_t number) {
    const RunList::Copy& copy = runs_.copy(number);
    const OperatorGraph::Value& value = graph_.values[copy.value];
    if (copy.is_read_here || value.stays) return false;
    if (copy.next_read != OperatorGraph::kNone) freed_ += value.bytes.count();
    reads_before_ += copy.reads_before;
    outputs_.push_back(number);
    return true;
  }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const RunList& runs_;
  std::vector<std::uint32_t> outputs_, inputs_;
  std::int64_t freed_ = 0, reads_before_ = 0;
  bool has_moved_ = false;
};

class BlockRematerialization {
 public:
  BlockRematerialization(const OperatorGraph& graph, const RerunGroups& groups, Bytes room,
                         std::size_t block_limit, const Work& work, Time useful)
      : graph_(graph),
        groups_(groups),
        room_(room),
        block_limit_(block_limit),
        work_(work),
        useful_(useful),
        runs_(graph, groups) {}

  std::optional<std::vector<std::uint32_t>> run() {
    judge();
    if (bytes_.empty()) return runs_.sequence().nodes;
    for (std::uint32_t place = 0; place < runs_.size(); ++place)
      while (bytes_[place] > room_) {
        // From here on only more may run.
        if (time_ >= useful_ || !lower(place)) return std::nullopt;
        place = runs_.place();
      }
    // What a block reads again may be there longer at places that the walk has left.
    if (std::ranges::max(bytes_) > room_ || time_ >= useful_) return std::nullopt;
    return runs_.sequence().nodes;
  }

 private:
  /// Whether everything is there that is read.
  bool judge() {
    const auto cost = judge_computations(graph_, runs_.sequence().nodes);
    work_.add(kWorkOfLook * runs_.size());
    if (!cost) return false;
    bytes_ = cost->bytes;
    time_ = cost->time;
    return true;
  }

  void look_from(std::uint32_t place) {
    work_.add(kWorkOfLook * runs_.size());
    runs_.look_from(place);
  }

  /// Whether a block was found whose runs moved or run again, so that this place needs less.
  bool lower(std::uint32_t place) {
    if (runs_.size() > kMostRuns * graph_.nodes.size()) return false;
    look_from(place);
    while (const auto block = best_block()) {
      const auto done = runs_.done().subspan(block->begin, block->end - block->begin);
      const std::vector<std::uint32_t> instances(done.begin(), done.end());
      const RunList::Sequence before = runs_.sequence();
      const Bytes needed = bytes_[place];
      for (auto it = instances.rbegin(); it != instances.rend(); ++it) defer(*it);
      if (judge() && bytes_[runs_.place()] < needed) return true;
      runs_.put_back(before);
      runs_.deny(instances.back());
      judge();
      look_from(place);
    }
    return false;
  }

  /// The first of least cost, of the shortest blocks of which some help.
  [[nodiscard]] std::optional<RunBlock> best_block() const {
    std::size_t least = 1, most = 1;
    while (true) {
      if (const auto block = best_block(least, most)) return block;
      if (most >= block_limit_ || least > runs_.done().size()) return std::nullopt;
      least = most + 1;
      most = std::min(2 * most, block_limit_);
    }
  }

  [[nodiscard]] std::optional<RunBlock> best_block(std::size_t least, std::size_t most) const {
    std::optional<RunBlock> best;
    const auto done = runs_.done();
    for (std::size_t begin = 0; begin + least <= done.size(); ++begin) {
      GrowingBlock block(graph_, groups_, runs_);
      for (std::size_t end = begin; end < std::min(begin + most, done.size()); ++end) {
        work_.add(std::size_t{4});
        if (!block.add(done[end])) break;
        if (end + 1 - begin < least) continue;
        const auto cost = block.cost(room_.count());
        if (cost && (!best || *cost < best->cost)) best = RunBlock{begin, end + 1, *cost};
      }
    }
    return best;
  }

  /// Runs it again, or only later where nobody has read it, before it is read next and its inputs
  /// are read last.
  void defer(std::uint32_t instance) {
    look_from(runs_.place());
    std::uint32_t before = OperatorGraph::kNone;
    bool is_read = false;
    for (const std::uint32_t number : runs_.made(instance)) {
      before = std::min(before, runs_.copy(number).next_read);
      is_read = is_read || runs_.copy(number).reads_before > 0;
    }
    if (before == OperatorGraph::kNone) return;
    for (const std::uint32_t number : runs_.read(instance))
      if (runs_.copy(number).last_read > runs_.place())
        before = std::min(before, runs_.copy(number).last_read);
    if (is_read)
      runs_.run_again(instance, before);
    else if (!runs_[instance].is_moved)  // two that move behind each other would do so for ever
      runs_.move(instance, before);
  }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const Bytes room_;
  const std::size_t block_limit_;
  const Work& work_;
  const Time useful_;
  RunList runs_;
  std::vector<Bytes> bytes_;  ///< by run
  Time time_;                 ///< of all runs
};

}  // namespace

std::optional<std::vector<std::uint32_t>> rematerialize_blocks(const OperatorGraph& graph,
                                                               const RerunGroups& groups,
                                                               Bytes room, std::size_t block_limit,
                                                               const Work& work, Time useful) {
  return BlockRematerialization(graph, groups, room, block_limit, work, useful).run();
}

}  // namespace plimsoll
