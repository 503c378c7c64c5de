/// A plan of all ranks of a mesh, or of those that stand for all, while it is made from that of the first.
///
/// What the first rank has, the others have like it: memories, lanes, buffers and steps. By rank that is
/// played (PlayedRanks, in whose order), steps and buffers of the plan of one have their likes here.
#pragma once

#include "plan/build/hosts_of_replicas.hpp"
#include "plan/build/played_ranks.hpp"
#include "plan/build/spreading.hpp"
#include "plan/core/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace plimsoll {

/// Of a plan of all ranks.
inline constexpr std::size_t kMostSpreadSteps = 20'000'000;

/// A way that steps of the plan take: from a memory of the replica that is played to one, or to what that stands for
/// in another replica.
struct RankWay {
  MemoryId from{}, to{};
  std::uint32_t to_replica = 0;
  std::uint32_t form = 0;  ///< in SpreadPlan::forms: of what takes it
  friend auto operator<=>(const RankWay&, const RankWay&) = default;
};

/// A form in which collectives along an axis are done.
struct TakenForm {
  MeshAxis along = MeshAxis::data;
  CollectiveForm form;
  friend bool operator==(const TakenForm&, const TakenForm&) = default;
};

struct SpreadPlan {
  Plan plan;
  PlayedRanks played;
  std::vector<RankWay>
      ways;  ///< of ranks that are played, in the order in which they are taken first
  std::vector<CollectiveForm>
      forms;                     ///< of its collectives, the first of all that is no collective
  std::vector<TakenForm> taken;  ///< each once, in the order in which they are taken first
  HostsOfReplicas hosts;         ///< where not all ranks are played
};

/// Whom the first of a group sends to in a round, and from whom it receives, in ranks after it.
using RankTurn = std::pair<std::uint32_t, std::uint32_t>;

struct RankedPlan {
  /// Without steps and buffers. The arguments must outlive it. Throws std::invalid_argument, in words, for
  /// plans that update parameters on the way, that stand for replicas already, or that would have too many steps.
  RankedPlan(const Plan& of_one, const Workload& workload, const Platform& platform,
             const Topology& topology, const Spreading& spreading, PlayedRanks ranks);

  [[noreturn]] void refuse(const std::string& what) const;

  /// The place in Spreading::likes of the processor of the first rank whose memory it is, or kNone.
  [[nodiscard]] std::uint32_t device(MemoryId of_first) const { return device_[index(of_first)]; }
  /// In the memory of each rank that is like one of the first rank.
  [[nodiscard]] const std::vector<MemoryId>& memories(MemoryId of_first) const {
    return memory_[index(of_first)];
  }
  /// Of a rank that is played. What is no rank's own is that of its host (hosts_of_ranks.hpp).
  [[nodiscard]] MemoryId memory(MemoryId of_first, std::uint32_t rank) const;
  /// Where the state of a rank that is played lives, whose processor works in a memory of the first one.
  [[nodiscard]] const RankHomes& homes(MemoryId of_first, std::uint32_t rank) const;

  [[nodiscard]] BufferId buffer(BufferId of_one, std::uint32_t rank) const;
  [[nodiscard]] std::vector<BufferId> of_rank(std::span<const BufferId> of_one,
                                              std::uint32_t rank) const;
  void set_of_rank(std::span<const BufferId> of_one, std::uint32_t rank,
                   std::vector<BufferId>& all) const;
  /// Precondition: it is there.
  [[nodiscard]] StepId step(StepId of_one, std::uint32_t rank) const;
  /// Of the operator that a step of the plan of one runs, if it runs one.
  [[nodiscard]] CollectiveKind collective_kind(const Step& of_first) const;
  /// Whether it is a gradient to which several microbatches add.
  [[nodiscard]] bool is_summed_up(TensorId tensor) const;

  /// The one lane like that.
  LaneId lane(const Lane& wanted);
  /// That of a rank like a lane of the plan of one.
  [[nodiscard]] LaneId lane(LaneId of_one, std::uint32_t rank) const;
  /// Where every member sends to the one after it, and in another collective pairs exchange, then some
  /// send the same way in both and others do not. So that none of them waits where others go on, each
  /// turn has a stream of its own on a channel between two ranks.
  std::uint32_t stream_of(const Lane& channel, const RankTurn& turn);
  void note_way(const RankWay& way);

  Slice add_list(std::span<const BufferId> buffers);
  /// Dependencies may be there twice, in any order.
  StepId push(Step step, std::vector<Dependency>& after);
  /// A move on a channel, which waits for the ends of others.
  StepId add_round(const Lane& way, std::span<const BufferId> buffers, const Reduction& part,
                   std::span<const StepId> waits);

  const Plan& of_one;
  const Workload& workload;
  const Platform& platform;
  const Spreading& spreading;
  const PlayedRanks ranks;
  const std::uint32_t played;  ///< of the ranks
  /// Of the plan of one, Reduction::collective of which is no greater.
  std::uint32_t own_collectives = 0;
  SpreadPlan result;
  std::vector<StepId> steps;                ///< by step of the plan of one, and rank
  std::vector<std::vector<StepId>> open;    ///< by buffer: the ends of its last collective
  std::vector<std::vector<StepId>> rounds;  ///< by buffer: moves that use it
  std::vector<std::vector<StepId>> copies;  ///< by buffer: copies that read it

 private:
  void find_memories();
  void find_hosts(const Topology& topology);
  void find_homes();
  void begin();
  void add_buffers();
  LaneId add_lane_of(Lane it, std::uint32_t rank);

  std::vector<std::vector<MemoryId>> memory_;  ///< by memory of the first rank, and rank
  /// By memory of the plan of one that is no rank's own, and rank; else none.
  std::vector<std::vector<MemoryId>> hosts_;
  std::vector<std::uint32_t> device_;  ///< by memory: of the first rank, or kNone
  using LaneKey = std::tuple<Lane::Kind, ProcessorId, std::uint32_t, MemoryId, MemoryId, MemoryId>;
  [[nodiscard]] static LaneKey key_of(const Lane& lane);
  std::map<LaneKey, LaneId> lane_of_;
  std::vector<LaneId> lanes_;  ///< by rank and lane of the plan of one
  /// By channel between ranks: what each of its streams is for.
  std::map<LaneKey, std::vector<RankTurn>> turns_;
  std::set<RankWay> ways_;  ///< those of the result
};

}  // namespace plimsoll
