/// A cut of a chain (pofo_program.hpp) as a schedule in numbers: how long it takes with whole
/// copies, when copies back are issued here or there.
///
/// The model of offload_sequence.hpp, by the costs of the chain's stages: a beat is a forward or a
/// backward; a trip is a value that leaves for storage behind the beat that makes it, and comes
/// back before the beat that reads it next but one. On abstract chains a play is what the engine
/// measures; on networks stages need less than their costs say.
#pragma once

#include "policy/claims/grants.hpp"
#include "policy/hybrid/pofo_program.hpp"
#include "policy/offload/model/offload_model.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// What copying a stage's product takes: saved_i after a forward that kept, a_i after a bare one.
struct PofoCopies {
  struct Copy {
    Bytes bytes;
    Time out, in;
    Time moving;  ///< of `out`, the time in which bytes move, at its end
  };
  std::vector<Copy> kept, bare;  ///< by stage
};
[[nodiscard]] PofoCopies pofo_copies(const Problem& problem, const OffloadMemories& memories,
                                     const OffloadModel& model);

struct PofoBeat {
  OffloadAction action;  ///< forward, bare or backward
  Time duration;
  Bytes demand;            ///< allocated at its start
  Bytes freed;             ///< at its end
  std::uint32_t makes;     ///< a trip that leaves behind it, or kNone
  std::uint32_t releases;  ///< a trip whose source it reads last, or kNone
  std::uint32_t needs;     ///< a trip that must be back, or kNone
};

struct PofoTrip {
  std::uint32_t stage = 0;
  std::uint32_t needed = 0;  ///< the beat that needs it back
  PofoCopies::Copy copy;
};

struct PofoScore {
  std::vector<PofoBeat> beats;
  std::vector<PofoTrip> trips;  ///< in the order in which they leave; the last is needed first
  std::uint32_t turn = 0;       ///< the first backward
  /// By beat: bytes there while it runs, trips that are away until they are needed left out.
  std::vector<Bytes> loads;
};

/// O(stages of inner schedules + values of the inner table that decide them).
[[nodiscard]] PofoScore score_of(const PofoCut& cut, const PofoInner& inner,
                                 const ChainCosts& costs, const PofoCopies& copies);

/// A score as it is played; a value that a search can branch on. Each returns false where it would
/// wait for room for ever.
class PofoPlay {
 public:
  /// Of `model` the budget, what is resident, the optimizer, the release and whether ways are
  /// shared count. Both must outlive the play.
  PofoPlay(const OffloadModel& model, const PofoScore& score);

  bool beat();
  bool back(std::uint32_t trip);
  [[nodiscard]] Moment stream_free() const { return stream_free_; }
  /// The end of the step, the optimizer included; nothing where that has no room.
  [[nodiscard]] std::optional<Time> end();

 private:
  struct Stay {
    Moment out_end, read, in_end;
    std::uint32_t release_id = 0;
  };

  bool compute(Bytes demand, Moment ready, Time duration);
  void leave(std::uint32_t trip);
  void release(std::uint32_t trip);

  const OffloadModel* model_;
  const PofoScore* score_;
  GrantLedger ledger_;
  std::vector<Stay> stays_;
  std::size_t next_ = 0;
  Moment stream_free_, out_free_, in_free_;
};

}  // namespace plimsoll
