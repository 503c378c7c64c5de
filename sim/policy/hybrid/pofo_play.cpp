#include "policy/hybrid/pofo_play.hpp"

#include "base/dense_id.hpp"
#include "policy/claims/copy_time.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

class ScoreWriter {
 public:
  ScoreWriter(const PofoCut& cut, const PofoInner& inner, const ChainCosts& costs,
              const PofoCopies& copies)
      : cut_(cut), inner_(inner), costs_(costs), copies_(copies) {}

  PofoScore run() {
    forwards();
    score_.turn = static_cast<std::uint32_t>(score_.beats.size());
    backwards();
    find_uses();
    add_loads();
    return std::move(score_);
  }

 private:
  void forwards() {
    for (std::size_t b = 0; b < cut_.blocks.size(); ++b) {
      const PofoBlock& block = cut_.blocks[b];
      for (std::uint32_t s = block.first; s <= block.last; ++s)
        add(block.runs_again ? Kind::bare : Kind::forward, s);
      if (b + 1 == cut_.blocks.size() || !cut_.blocks[b + 1].moves_input) continue;
      score_.beats.back().makes = static_cast<std::uint32_t>(score_.trips.size());
      const auto& copy = block.runs_again ? copies_.bare : copies_.kept;
      score_.trips.push_back({block.last, kNone, copy[block.last]});
    }
  }

  void backwards() {
    for (std::size_t b = cut_.blocks.size(); b-- > 0;) {
      const PofoBlock& block = cut_.blocks[b];
      if (!block.runs_again) {
        add(Kind::backward, block.first);
        continue;
      }
      for (const auto [kind, s] : inner_.schedule(block.first, block.last, block.units))
        add(kind == ChainAction::Kind::keep   ? Kind::forward
            : kind == ChainAction::Kind::bare ? Kind::bare
                                              : Kind::backward,
            s);
    }
  }

  void add(Kind kind, std::uint32_t s) {
    const StageCosts& stage = costs_.stages[s];
    PofoBeat beat{{kind, s}, stage.forward, {}, {}, kNone, kNone, kNone};
    if (kind == Kind::forward) {
      beat.demand = stage.saved + stage.keep_workspace;
      beat.freed = stage.keep_workspace;
    } else if (kind == Kind::bare) {
      beat.demand = stage.output + stage.bare_workspace;
      beat.freed = stage.bare_workspace;
    } else {
      const Bytes before = s > 0 ? costs_.stages[s - 1].gradient : costs_.input_gradient;
      beat.duration = stage.backward;
      beat.demand = before + stage.lasting + stage.backward_workspace;
      if (s + 1 == costs_.stages.size()) beat.demand += stage.gradient;
      beat.freed = stage.gradient + stage.backward_workspace;
    }
    score_.beats.push_back(beat);
  }

  /// Each stay of a value ends at its last use, or where it is made anew. What travels is not freed
  /// in between by its readers, but by its copy out.
  void find_uses() {
    const std::size_t stages = costs_.stages.size();
    std::vector<std::uint32_t> maker(stages, kNone), last_use(score_.beats.size(), kNone);
    for (std::uint32_t b = 0; b < score_.beats.size(); ++b) {
      const auto [kind, s] = score_.beats[b].action;
      last_use[b] = b;
      if (kind == Kind::backward) use(b, maker[s], last_use);
      if (s > 0) use(b, maker[s - 1], last_use);
      if (kind != Kind::backward) maker[s] = b;
    }
    for (std::uint32_t b = 0; b < score_.beats.size(); ++b) {
      const auto [kind, s] = score_.beats[b].action;
      if (kind == Kind::backward) continue;
      const StageCosts& stage = costs_.stages[s];
      score_.beats[last_use[b]].freed += kind == Kind::forward ? stage.saved : stage.output;
    }
  }

  void use(std::uint32_t b, std::uint32_t maker, std::vector<std::uint32_t>& last_use) {
    last_use[maker] = b;
    const std::uint32_t t = score_.beats[maker].makes;
    if (t == kNone) return;
    if (b < score_.turn) {
      score_.beats[b].releases = t;
    } else if (score_.trips[t].needed == kNone) {
      score_.trips[t].needed = b;
      score_.beats[b].needs = t;
    }
  }

  void add_loads() {
    Bytes now = costs_.resident;
    for (const PofoBeat& beat : score_.beats) {
      if (beat.needs != kNone) now += score_.trips[beat.needs].copy.bytes;
      now += beat.demand;
      score_.loads.push_back(now);
      now -= beat.freed;
      if (beat.releases != kNone) now -= score_.trips[beat.releases].copy.bytes;
    }
  }

  const PofoCut& cut_;
  const PofoInner& inner_;
  const ChainCosts& costs_;
  const PofoCopies& copies_;
  PofoScore score_;
};

}  // namespace

PofoCopies pofo_copies(const Problem& problem, const OffloadMemories& memories,
                       const OffloadModel& model) {
  PofoCopies copies;
  for (std::size_t s = 0; s < model.stages.size(); ++s) {
    const OffloadStage& stage = model.stages[s];
    copies.kept.push_back({stage.moved, stage.out, stage.in, stage.moving});
    const Bytes bytes = problem.chain.stages[s].output_bytes;
    copies.bare.push_back({bytes, copy_time(problem, memories.home, memories.storage, bytes),
                           copy_time(problem, memories.storage, memories.home, bytes),
                           moving_time(problem, memories.home, memories.storage, bytes)});
  }
  return copies;
}

PofoScore score_of(const PofoCut& cut, const PofoInner& inner, const ChainCosts& costs,
                   const PofoCopies& copies) {
  return ScoreWriter(cut, inner, costs, copies).run();
}

PofoPlay::PofoPlay(const OffloadModel& model, const PofoScore& score)
    : model_(&model), score_(&score), ledger_(model.budget), stays_(score.trips.size()) {
  ledger_.place(model.resident);
}

bool PofoPlay::compute(Bytes demand, Moment ready, Time duration) {
  const auto start = ledger_.grant(demand, ready);
  if (start) stream_free_ = after(*start, duration);
  return start.has_value();
}

bool PofoPlay::beat() {
  const PofoBeat& it = score_->beats[next_++];
  const Moment ready =
      it.needs == kNone ? stream_free_ : std::max(stream_free_, stays_[it.needs].in_end);
  if (!compute(it.demand, ready, it.duration)) return false;
  ledger_.free_at(stream_free_, it.freed);
  if (it.releases != kNone) release(it.releases);
  if (it.makes != kNone) leave(it.makes);
  return true;
}

void PofoPlay::leave(std::uint32_t trip) {
  const PofoCopies::Copy& copy = score_->trips[trip].copy;
  Stay& stay = stays_[trip];
  const Moment start = std::max({out_free_, stream_free_, model_->one_way ? in_free_ : Moment{}});
  stay.out_end = out_free_ = after(start, copy.out);
  if (model_->progressive)
    stay.release_id =
        ledger_.release_progressively(stay.out_end.time - copy.moving, stay.out_end, copy.bytes);
}

/// The beat that reads it last has been issued.
void PofoPlay::release(std::uint32_t trip) {
  Stay& stay = stays_[trip];
  stay.read = stream_free_;
  if (model_->progressive)
    ledger_.open_release(stay.release_id, stay.read);
  else
    ledger_.free_at(std::max(stay.out_end, stay.read), score_->trips[trip].copy.bytes);
}

bool PofoPlay::back(std::uint32_t trip) {
  const PofoCopies::Copy& copy = score_->trips[trip].copy;
  Stay& stay = stays_[trip];
  const Moment ready =
      std::max({in_free_, stay.out_end, stay.read, model_->one_way ? out_free_ : Moment{}});
  const auto start = ledger_.grant(copy.bytes, ready);
  if (!start) return false;
  stay.in_end = in_free_ = after(*start, copy.in);
  return true;
}

std::optional<Time> PofoPlay::end() {
  if (!compute(model_->optimizer_workspace, stream_free_, model_->optimizer)) return std::nullopt;
  return std::max({stream_free_.time, out_free_.time, in_free_.time});
}

}  // namespace plimsoll
