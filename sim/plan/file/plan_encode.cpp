#include "plan/file/plan_message.hpp"
#include "plan/file/plan_names.hpp"

#include <algorithm>
#include <cassert>
#include <plan/plan.pb.h>
#include <stdexcept>

namespace plimsoll {

namespace {

namespace v1 = plan::v1;

std::string decimal(Energy energy) {
  Energy::Count rest = energy.count();
  assert(rest >= 0);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  std::ranges::reverse(digits);
  return digits;
}

class Encoder {
 public:
  Encoder(const Plan& plan, const Workload& workload, const Platform& platform, v1::Plan& message)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        tensors_(workload.tensors),
        operators_(workload.operators),
        message_(message) {}

  void encode() {
    message_.set_policy(plan_.policy);
    message_.set_microbatches(plan_.microbatches);
    for (const Lane& lane : plan_.lanes) encode(lane, *message_.add_lanes());
    for (const Buffer& buffer : plan_.buffers) encode(buffer, *message_.add_buffers());
    for (const BufferId id : plan_.initial)
      message_.add_initial_buffers(static_cast<std::uint32_t>(id));
    for (const Step& step : plan_.steps) encode(step, *message_.add_steps());
    for (const Release& release : plan_.releases) encode(release, *message_.add_releases());
    for (const Mirror& mirror : plan_.mirrors) {
      v1::Mirror& out = *message_.add_mirrors();
      out.set_processor(platform_[mirror.processor].name);
      out.set_like(platform_[mirror.like].name);
    }
    for (const MemoryMirror& mirror : plan_.memory_mirrors) {
      v1::MemoryMirror& out = *message_.add_memory_mirrors();
      out.set_memory(platform_[mirror.memory].name);
      out.set_like(platform_[mirror.like].name);
    }
    for (const LinkMirror& mirror : plan_.link_mirrors) {
      v1::LinkMirror& out = *message_.add_link_mirrors();
      out.set_link(platform_[mirror.link].name);
      out.set_direction(mirror.direction);
      out.set_like(platform_[mirror.like].name);
      out.set_like_direction(mirror.like_direction);
    }
    for (const MemoryId id : plan_.ordered_grants) message_.add_ordered_grants(platform_[id].name);
    for (const auto& [memory, bytes] : plan_.limits) {
      v1::Limit& limit = *message_.add_limits();
      limit.set_memory(platform_[memory].name);
      limit.set_bytes(bytes.count());
      const PlanArena* arena = arena_in(plan_, memory);
      if (arena == nullptr) continue;
      limit.set_arena_alignment_bytes(arena->alignment.count());
      limit.set_arena_has_offsets(arena->has_offsets);
    }
    if (plan_.steady_from_microbatch)
      message_.set_steady_from_microbatch(*plan_.steady_from_microbatch);
    if (plan_.steady_until_microbatch)
      message_.set_steady_until_microbatch(*plan_.steady_until_microbatch);
    if (plan_.mini_batch) message_.set_mini_batch_microbatches(*plan_.mini_batch);
    encode_claims();
    encode_bounds();
  }

 private:
  void encode(const Lane& lane, v1::Lane& out) const {
    if (lane.kind == Lane::Kind::stream) {
      out.mutable_stream()->set_processor(platform_[lane.processor].name);
      out.mutable_stream()->set_index(lane.stream);
    } else {
      out.mutable_channel()->set_from_memory(platform_[lane.from].name);
      out.mutable_channel()->set_to_memory(platform_[lane.to].name);
      if (lane.stream > 0) out.mutable_channel()->set_index(lane.stream);
      if (lane.image)
        out.mutable_channel()->set_image_from_memory(platform_[lane.image->from].name);
      if (lane.image && !lane.comes_back())
        out.mutable_channel()->set_image_to_memory(platform_[lane.image->to].name);
    }
  }

  void encode(const Buffer& buffer, v1::Buffer& out) const {
    const std::string& name = workload_[buffer.tensor].name;
    out.set_tensor(name);
    if (const auto which = tensors_.occurrence(name, static_cast<std::uint32_t>(buffer.tensor)))
      out.set_tensor_occurrence(*which);
    out.set_memory(platform_[buffer.memory].name);
    out.set_microbatch(buffer.microbatch);
    out.set_instance(buffer.instance);
    if (buffer.offset) out.set_offset_bytes(buffer.offset->count());
  }

  void encode(OperatorId op, std::uint32_t microbatch, Form form, v1::Run& out) const {
    const std::string& name = workload_[op].name;
    out.set_op(name);
    if (const auto which = operators_.occurrence(name, static_cast<std::uint32_t>(op)))
      out.set_op_occurrence(*which);
    out.set_microbatch(microbatch);
    out.set_form(form == Form::keep ? v1::FORM_KEEP : v1::FORM_BARE);
  }

  void encode_work(const Step& step, v1::Step& out) const {
    switch (step.kind) {
      case StepKind::compute:
        encode(step.op, step.microbatch, step.form, *out.mutable_compute());
        if (step.duration) out.set_duration_ps(step.duration->count());
        return out.set_instance(step.instance);
      case StepKind::pair:
        encode(step.op, step.microbatch, step.form, *out.mutable_pair()->mutable_first());
        encode(step.second, step.second_microbatch, step.second_form,
               *out.mutable_pair()->mutable_second());
        out.mutable_pair()->set_duration_ps(step.duration.value_or(Time{}).count());
        return out.set_instance(step.instance);
      case StepKind::copy:
        return out.mutable_copy()->set_source(release_of(step.source));
      case StepKind::reduce:
        return encode(plan_.reductions[step.reduction], *out.mutable_reduce());
    }
  }

  /// A file has a step for each round: which parts the rounds of a joined one move is not known.
  void encode(const Reduction& reduction, v1::Reduce& out) const {
    if (reduction.rounds != 1) throw std::logic_error("a plan with joined rounds is written");
    out.set_first_part(reduction.first);
    out.set_parts(reduction.count);
    out.set_of_parts(reduction.of);
    out.set_adds(reduction.adds);
    out.set_opens_parts(reduction.opens);
    out.set_collective(reduction.collective);
    if (reduction.brings) out.set_brings_part(*reduction.brings);
    if (reduction.op == kNoOperator) return;
    const std::string& name = workload_[reduction.op].name;
    out.set_op(name);
    if (const auto which = operators_.occurrence(name, static_cast<std::uint32_t>(reduction.op)))
      out.set_op_occurrence(*which);
  }

  static v1::SourceRelease release_of(SourceRelease release) {
    switch (release) {
      case SourceRelease::keep:
        return v1::SOURCE_RELEASE_KEEP;
      case SourceRelease::whole:
        return v1::SOURCE_RELEASE_WHOLE;
      case SourceRelease::progressive:
        break;
    }
    return v1::SOURCE_RELEASE_PROGRESSIVE;
  }

  void encode(const Step& step, v1::Step& out) const {
    out.set_lane(static_cast<std::uint32_t>(step.lane));
    encode_work(step, out);
    if (step.workspace_offset) out.set_workspace_offset_bytes(step.workspace_offset->count());
    for (const BufferId id : plan_.list(step.reads)) out.add_reads(static_cast<std::uint32_t>(id));
    for (const BufferId id : plan_.list(step.writes))
      out.add_writes(static_cast<std::uint32_t>(id));
    for (const Dependency& dependency : plan_.after(step)) {
      const auto on = static_cast<std::uint32_t>(dependency.on);
      if (dependency.edge == Dependency::Edge::after_end)
        out.add_after_end(on);
      else
        out.add_after_start(on);
    }
  }

  void encode(const Release& release, v1::Release& out) const {
    out.set_buffer(static_cast<std::uint32_t>(release.buffer));
    for (const StepId id : plan_.after(release)) out.add_after(static_cast<std::uint32_t>(id));
  }

  template <class Estimates, class Message>
  void encode_common(const Estimates& in, Message& out) const {
    if (in.makespan) out.set_makespan_ps(in.makespan->count());
    if (in.period) out.set_period_ps(in.period->count());
    for (const auto& peak : in.peak) encode(peak, *out.add_peak());
  }

  void encode(const std::pair<MemoryId, Bytes>& peak, v1::MemoryBytes& out) const {
    out.set_memory(platform_[peak.first].name);
    out.set_peak_bytes(peak.second.count());
  }

  void encode_claims() {
    v1::Claims claims;
    encode_common(plan_.claims, claims);
    if (plan_.claims.energy) claims.set_energy_zj(decimal(*plan_.claims.energy));
    for (const std::int64_t count : plan_.claims.in_flight) claims.add_in_flight(count);
    if (const auto& model = plan_.claims.model_makespan)
      claims.set_model_makespan_ps(model->count());
    if (const auto& model = plan_.claims.model_period) claims.set_model_period_ps(model->count());
    for (const auto& peak : plan_.claims.model_peak) encode(peak, *claims.add_model_peak());
    if (plan_.claims.optimal) claims.set_optimal(*plan_.claims.optimal);
    if (!plan_.claims.chosen.empty()) claims.set_chosen(plan_.claims.chosen);
    for (const LeftOut& it : plan_.claims.left_out) {
      v1::LeftOut& out = *claims.add_left_out();
      out.set_policy(it.policy);
      out.set_why(it.why);
    }
    if (const auto& eviction = plan_.claims.eviction) {
      v1::Eviction& out = *claims.mutable_eviction();
      out.set_evictions(eviction->evictions);
      out.set_evicted_bytes(eviction->evicted_bytes.count());
      out.set_score_evaluations(eviction->score_evaluations);
      out.set_searches(eviction->searches);
      out.set_mean_fragmentation_ppb(eviction->mean_fragmentation.count());
    }
    if (claims.ByteSizeLong() > 0) *message_.mutable_claims() = std::move(claims);
  }

  void encode_bounds() {
    v1::Bounds bounds;
    encode_common(plan_.bounds, bounds);
    if (plan_.bounds.energy) bounds.set_energy_zj(decimal(*plan_.bounds.energy));
    if (bounds.ByteSizeLong() > 0) *message_.mutable_bounds() = std::move(bounds);
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  PlanNames tensors_, operators_;
  v1::Plan& message_;
};

}  // namespace

void encode_plan(const Plan& plan, const Workload& workload, const Platform& platform,
                 plan::v1::Plan& message) {
  Encoder(plan, workload, platform, message).encode();
}

}  // namespace plimsoll
