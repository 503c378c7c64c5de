#include "report/replay/replay_report.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Object = nlohmann::ordered_json;

Object use_json(const AllocatorUse& use) {
  return {{"requested", use.requested.count()},
          {"allocated", use.allocated.count()},
          {"active", use.active.count()},
          {"reserved", use.reserved.count()}};
}

Object gaps_json(const MemoryGaps& gaps) {
  return {{"rounding", gaps.rounding.count()},
          {"unsplit_tails", gaps.tails.count()},
          {"holes", gaps.holes.count()}};
}

Object cut_json(const std::vector<NamedCut>& cut) {
  Object all = Object::array();
  for (const NamedCut& it : cut)
    all.push_back({{"segment", it.segment.number},
                   {"size", it.segment.size.count()},
                   {"free", it.segment.free.count()},
                   {"largest_free", it.segment.largest_free.count()},
                   {"blocks", it.segment.blocks_in_use},
                   {"kept_by", it.keepers}});
  return all;
}

Object step_json(const Trace& trace, std::size_t s, const ReplayStep& it) {
  const TraceStep& step = trace.steps[s];
  Object object{{"step", s}, {"op", to_text(step.op)}};
  if (step.op != TraceStep::Op::events_complete && step.op != TraceStep::Op::attempt)
    object["id"] = trace.blocks[step.block];
  if (step.op == TraceStep::Op::alloc || step.op == TraceStep::Op::attempt)
    object["bytes"] = step.bytes.count();
  object["result"] = to_text(it.what);
  if (it.piece) {
    object["segment"] = it.piece->segment;
    object["offset"] = it.piece->offset.count();
    object["block_bytes"] = it.piece->size.count();
  }
  object.update(use_json(it.now));
  object["inactive_split"] = it.inactive_split.count();
  object["segments"] = it.segments;
  return object;
}

Object refusal_json(const ReplayRefusal& refusal) {
  Object object{{"step", refusal.step},
                {"asked", refusal.asked.count()},
                {"rounded", refusal.rounded.count()},
                {"largest_free", refusal.largest_free.count()},
                {"gaps", gaps_json(refusal.gaps)},
                {"cut_segments", refusal.cut_segments},
                {"kept", cut_json(refusal.cut)}};
  if (!refusal.free.is_unlimited()) object["free"] = refusal.free.count();
  object.update(use_json(refusal.now));
  return object;
}

Object outcome_json(const ReplayChoice& choice, const Replayed& it) {
  Object object{{"allocator", choice.label},
                {"status", it.refusal ? "oom" : "ok"},
                {"steps_played", it.steps},
                {"load", it.load.count()},
                {"peak", use_json(it.counters.peak)},
                {"final", use_json(it.counters.now)},
                {"retries", it.counters.retries},
                {"ooms", it.counters.ooms},
                {"device_allocations", it.counters.device_allocations},
                {"device_frees", it.counters.device_frees}};
  object["final"]["inactive_split"] = it.counters.inactive_split.count();
  object["final"]["segments"] = it.counters.segments;
  if (!it.largest_free.is_unlimited()) object["final"]["largest_free"] = it.largest_free.count();
  return object;
}

}  // namespace

std::string replay_json(const ReplayReport& report) {
  Object object = outcome_json(report.choice, report.replayed);
  if (!report.capacity.is_unlimited()) object["capacity"] = report.capacity.count();
  object["gaps"] = gaps_json(report.replayed.gaps);
  object["kept"] = cut_json(report.replayed.cut);
  if (report.replayed.refusal) object["oom"] = refusal_json(*report.replayed.refusal);
  object["steps"] = Object::array();
  for (std::size_t s = 0; s < report.steps.size(); ++s)
    object["steps"].push_back(step_json(report.trace, s, report.steps[s]));
  object["comparison"] = Object::array();
  for (const ComparedReplay& it : report.comparison) {
    Object other = outcome_json(it.choice, it.replayed);
    if (it.replayed.refusal) other["oom"] = {{"step", it.replayed.refusal->step}};
    if (report.replayed.refusal) other["serves"] = serves(it.replayed, *report.replayed.refusal);
    object["comparison"].push_back(std::move(other));
  }
  return object.dump(2) + '\n';
}

}  // namespace plimsoll
