/// State of ranks in other memories than those of their processors (workload/sharding/away_step.hpp): its moves,
/// and updates that another processor runs.
#pragma once

#include "plan/build/ranked_plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// Of one step of one rank.
struct StepBuffers {
  std::vector<BufferId> reads, writes;
};

class StateMoves {
 public:
  /// `plan` must outlive it. Throws std::invalid_argument, in words, where the plan of one moves state itself.
  explicit StateMoves(RankedPlan& plan);

  /// Of the likes of step `s` on a rank, before it is added: the stream in which it runs, what it uses there,
  /// and what it waits for beside what the plan has it wait for.
  void begin(std::uint32_t s, std::uint32_t rank, Step& it, StepBuffers& used,
             std::vector<Dependency>& after);
  /// The last in each stream, and every move. Call for each step.
  void note_users(StepId id, std::span<const BufferId> buffers);
  /// Of a step of the plan of one that moves state: one for each pair of memories, of all that it moves
  /// between the two.
  void add_moves(StepId of_one, std::uint32_t rank);

  /// Whether it is there from the start to the end.
  [[nodiscard]] bool is_room_for_gradient(BufferId id) const;
  /// Adds to the steps of a release: those that the plan has in one stream may be in two.
  void add_users_since(std::uint32_t from, BufferId id);

 private:
  /// Of a rank's processor.
  struct Begun {
    std::vector<StepId> gradients;  ///< moves of them
    bool updates = false;
  };

  void refuse_copies() const;
  [[nodiscard]] std::optional<ProcessorId> updates_on(const Step& of_one, std::uint32_t rank) const;
  const std::vector<Time>& update_times(ProcessorId processor);
  void keep_here(const Step& it, std::vector<BufferId>& buffers) const;
  [[nodiscard]] bool stores_gradients(const Step& of_one) const;
  void leave_to_moves(std::vector<BufferId>& stored) const;
  void wait_for_users(std::uint32_t s, std::uint32_t rank, std::span<const BufferId> buffers,
                      std::vector<Dependency>& after);
  [[nodiscard]] std::optional<BufferId> that_holds(const Step& step, TensorId tensor) const;

  RankedPlan& plan_;
  std::vector<std::vector<StepId>> users_;  ///< by buffer: the last of its users in each lane
  std::vector<Begun> begun_;                ///< by processor of the first rank, and rank
  std::map<ProcessorId, std::vector<Time>> update_times_;  ///< by operator
};

}  // namespace plimsoll
