#include "base/diagnostic.hpp"
#include "base/document_scan.hpp"
#include "base/id_set.hpp"
#include "base/names_hint.hpp"
#include "plan/file/plan_message.hpp"
#include "plan/file/plan_names.hpp"

#include <limits>
#include <plan/plan.pb.h>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

namespace v1 = plan::v1;

/// "steps[3].reads"; made into text only for a message.
struct Place {
  std::string_view list;
  int item = -1;
  std::string_view field = {};

  [[nodiscard]] std::string text() const {
    std::string text(list);
    if (item >= 0) text += fmt::format("[{}]", item);
    if (!field.empty()) text += fmt::format(".{}", field);
    return text;
  }
  [[nodiscard]] Place of(std::string_view part) const { return {list, item, part}; }
};

std::optional<Energy> energy_of(const std::string& digits) {
  constexpr std::size_t kMostDigits = 38;  // 10^38 < 2^127
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  Energy::Count count = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    count = 10 * count + (digit - '0');
  }
  return Energy{count};
}

class Decoder {
 public:
  Decoder(const v1::Plan& message, const PlanPlaces& places, const Workload& workload,
          const Platform& platform)
      : in_(message),
        places_(places),
        workload_(workload),
        tensors_(workload.tensors),
        operators_(workload.operators),
        processors_(platform.processors),
        memories_(platform.memories),
        links_(platform.links) {}

  Plan decode() {
    plan_.policy = in_.policy();
    decode_microbatches();
    decode_each("lanes", in_.lanes(), &Decoder::decode_lane);
    decode_each("buffers", in_.buffers(), &Decoder::decode_buffer);
    for (const std::uint32_t id : in_.initial_buffers())
      plan_.initial.push_back(buffer(id, {"initial_buffers"}));
    decode_each("steps", in_.steps(), &Decoder::decode_step);
    decode_each("releases", in_.releases(), &Decoder::decode_release);
    for (const v1::Mirror& mirror : in_.mirrors())
      plan_.mirrors.push_back(
          {processor(mirror.processor(), {"mirrors"}), processor(mirror.like(), {"mirrors"})});
    for (const v1::MemoryMirror& mirror : in_.memory_mirrors())
      plan_.memory_mirrors.push_back(
          {memory(mirror.memory(), {"memory_mirrors"}), memory(mirror.like(), {"memory_mirrors"})});
    decode_each("link_mirrors", in_.link_mirrors(), &Decoder::decode_link_mirror);
    for (const std::string& name : in_.ordered_grants())
      plan_.ordered_grants.push_back(memory(name, {"ordered_grants"}));
    for (const v1::Limit& limit : in_.limits()) decode_limit(limit);
    decode_claims();
    decode_common(in_.bounds(), "bounds", plan_.bounds);
    decode_energy(in_.bounds(), "bounds", plan_.bounds.energy);
    diagnostics_.throw_if_errors();
    return std::move(plan_);
  }

 private:
  void error(const Place& place, std::string_view message, std::string hint = {}) {
    const std::string part = place.text();
    diagnostics_.error(places_(part), fmt::format("{}: {}", part, message), std::move(hint));
  }

  /// Stops where further errors are only counted.
  template <class Items, class Decode>
  void decode_each(std::string_view list, const Items& items, Decode decode_one) {
    for (int i = 0; i < items.size() && !diagnostics_.is_full(); ++i)
      (this->*decode_one)(items[i], Place{list, i});
  }

  void decode_microbatches() {
    plan_.microbatches = in_.microbatches();
    const std::uint64_t count = in_.microbatches();
    if (count == 0) error({"microbatches"}, "is 0 or left out; a plan has at least 1");
    // What is counted for each operator and microbatch must be in proportion to the file.
    const auto runs = 2 * static_cast<std::uint64_t>(in_.steps_size());
    if (workload_.optimizer_begin * count > runs)
      error({"microbatches"},
            fmt::format("{} operators for each of {} microbatches cannot run in {} steps",
                        workload_.optimizer_begin, count, in_.steps_size()));
    decode_steady(count);
    if (!in_.has_mini_batch_microbatches()) return;
    plan_.mini_batch = in_.mini_batch_microbatches();
    if (*plan_.mini_batch == 0)
      error({"mini_batch_microbatches"}, "is 0; a mini-batch has at least 1");
  }

  void decode_steady(std::uint64_t count) {
    if (in_.has_steady_until_microbatch()) {
      plan_.steady_until_microbatch = in_.steady_until_microbatch();
      if (!in_.has_steady_from_microbatch() ||
          in_.steady_until_microbatch() <= in_.steady_from_microbatch() ||
          in_.steady_until_microbatch() >= count)
        error({"steady_until_microbatch"},
              fmt::format("is {}; expected one of {} microbatches, after `steady_from_microbatch`",
                          in_.steady_until_microbatch(), count));
    }
    if (!in_.has_steady_from_microbatch()) return;
    plan_.steady_from_microbatch = in_.steady_from_microbatch();
    if (std::uint64_t{in_.steady_from_microbatch()} + 2 > count)
      error({"steady_from_microbatch"},
            fmt::format("is {}; with {} microbatches no interval is steady",
                        in_.steady_from_microbatch(), count));
  }

  // --- names -------------------------------------------------------------------------------

  std::uint32_t named(const PlanNames& names, std::string_view kind, const std::string& name,
                      std::optional<std::uint32_t> occurrence, const Place& place) {
    const auto same = names.find(name);
    if (same.empty()) {
      refuse_name(names, kind, name, place);
    } else if (occurrence ? *occurrence >= same.size() : same.size() > 1) {
      const std::string count = same.size() == 1 ? fmt::format("only one {} has", kind)
                                                 : fmt::format("{} {}s have", same.size(), kind);
      error(place, fmt::format("{} the name `{}`; `{}_occurrence` says which, from 0", count,
                               excerpt(name), kind == "operator" ? "op" : kind));
    } else {
      return same[occurrence.value_or(0)].second;
    }
    return 0;
  }

  void refuse_name(const PlanNames& names, std::string_view kind, const std::string& name,
                   const Place& place) {
    if (name.empty()) return error(place, fmt::format("names no {}", kind));
    // A suggestion compares with every name there is.
    std::string hint;
    if (suggestions_left_ > 0) {
      --suggestions_left_;
      hint = hint_of_names(name, names.all());
    }
    error(place, fmt::format("unknown {} `{}`", kind, excerpt(name)), std::move(hint));
  }

  MemoryId memory(const std::string& name, const Place& place) {
    return MemoryId{named(memories_, "memory", name, 0, place)};
  }

  ProcessorId processor(const std::string& name, const Place& place) {
    return ProcessorId{named(processors_, "processor", name, 0, place)};
  }

  // --- indices -----------------------------------------------------------------------------

  template <class Id>
  Id index(std::uint32_t found, int size, std::string_view kind, const Place& place) {
    if (found >= static_cast<std::uint32_t>(size))
      error(place,
            fmt::format("there is no {} {}; the plan has {}, counted from 0", kind, found, size));
    return Id{found};
  }
  BufferId buffer(std::uint32_t found, const Place& place) {
    return index<BufferId>(found, in_.buffers_size(), "buffer", place);
  }
  StepId step(std::uint32_t found, const Place& place) {
    return index<StepId>(found, in_.steps_size(), "step", place);
  }
  std::uint32_t microbatch(std::uint32_t found, const Place& place) {
    if (found >= in_.microbatches() && in_.microbatches() > 0)
      error(place, fmt::format("there is no microbatch {}; the plan has {}, counted from 0", found,
                               in_.microbatches()));
    return found;
  }

  template <class Quantity>
  Quantity count(std::int64_t found, const Place& place) {
    const Quantity quantity{found};
    if (found < 0 || quantity.is_unlimited())
      error(place, fmt::format("is {}; expected 0 to {}", found,
                               std::numeric_limits<std::int64_t>::max() - 1));
    return quantity;
  }

  // --- parts -------------------------------------------------------------------------------

  void decode_limit(const v1::Limit& in) {
    const MemoryId of = memory(in.memory(), {"limits"});
    plan_.limits.emplace_back(of, count<Bytes>(in.bytes(), {"limits"}));
    if (!in.has_arena_alignment_bytes()) {
      if (in.arena_has_offsets())
        error({"limits", -1, "arena_has_offsets"}, "is of a limit with an arena alone");
      return;
    }
    const Place place{"limits", -1, "arena_alignment_bytes"};
    plan_.arenas.push_back(
        {of, count<Bytes>(in.arena_alignment_bytes(), place), in.arena_has_offsets()});
    if (in.arena_alignment_bytes() == 0) error(place, "is 0; expected 1 or more");
  }

  void decode_lane(const v1::Lane& in, const Place& place) {
    Lane lane;
    if (in.has_stream()) {
      lane.processor = processor(in.stream().processor(), place.of("stream"));
      lane.stream = in.stream().index();
    } else if (in.has_channel()) {
      lane.kind = Lane::Kind::channel;
      lane.from = memory(in.channel().from_memory(), place.of("channel.from_memory"));
      lane.to = memory(in.channel().to_memory(), place.of("channel.to_memory"));
      lane.stream = in.channel().index();
      decode_image(in.channel(), lane, place);
    } else {
      error(place, "is neither a stream nor a channel");
    }
    plan_.lanes.push_back(lane);
  }

  void decode_image(const v1::Channel& in, Lane& lane, const Place& place) {
    if (in.has_image_to_memory() && !in.has_image_from_memory())
      return error(place, "states `image_to_memory`, but no `image_from_memory`");
    if (!in.has_image_from_memory()) return;
    lane.image = {memory(in.image_from_memory(), place.of("channel.image_from_memory")),
                  in.has_image_to_memory()
                      ? memory(in.image_to_memory(), place.of("channel.image_to_memory"))
                      : lane.from};
  }

  void decode_link_mirror(const v1::LinkMirror& in, const Place& place) {
    const auto link = [&](const std::string& name, std::string_view part) {
      return LinkId{named(links_, "link", name, 0, place.of(part))};
    };
    for (const auto& [direction, part] :
         {std::pair(in.direction(), "direction"), std::pair(in.like_direction(), "like_direction")})
      if (direction > 1)
        error(place.of(part), fmt::format("is {}; a link has directions 0 and 1", direction));
    plan_.link_mirrors.push_back({link(in.link(), "link"), link(in.like(), "like"),
                                  static_cast<std::uint8_t>(in.direction() & 1),
                                  static_cast<std::uint8_t>(in.like_direction() & 1)});
  }

  void decode_buffer(const v1::Buffer& in, const Place& place) {
    std::optional<std::uint32_t> occurrence;
    if (in.has_tensor_occurrence()) occurrence = in.tensor_occurrence();
    Buffer out;
    out.tensor = TensorId{named(tensors_, "tensor", in.tensor(), occurrence, place)};
    out.memory = memory(in.memory(), place);
    out.microbatch = microbatch(in.microbatch(), place);
    out.instance = in.instance();
    if (in.has_offset_bytes())
      out.offset = count<Bytes>(in.offset_bytes(), place.of("offset_bytes"));
    plan_.buffers.push_back(out);
  }

  struct Run {
    OperatorId op = kNoOperator;
    std::uint32_t microbatch = 0;
    Form form = Form::keep;
  };

  OperatorId op_named(const auto& in, const Place& place) {
    std::optional<std::uint32_t> occurrence;
    if (in.has_op_occurrence()) occurrence = in.op_occurrence();
    return OperatorId{named(operators_, "operator", in.op(), occurrence, place)};
  }

  Run decode_run(const v1::Run& in, const Place& place) {
    if (!v1::Form_IsValid(in.form()))
      error(place, fmt::format("unknown form {}", static_cast<int>(in.form())));
    return {op_named(in, place), microbatch(in.microbatch(), place),
            in.form() == v1::FORM_BARE ? Form::bare : Form::keep};
  }

  void decode_compute(const v1::Run& in, const Place& place, Step& out) {
    const Run run = decode_run(in, place.of("compute"));
    out.kind = StepKind::compute;
    out.op = run.op;
    out.microbatch = run.microbatch;
    out.form = run.form;
  }

  void decode_pair(const v1::Pair& in, const Place& place, Step& out) {
    const Run first = decode_run(in.first(), place.of("pair.first"));
    const Run second = decode_run(in.second(), place.of("pair.second"));
    out.kind = StepKind::pair;
    out.op = first.op;
    out.microbatch = first.microbatch;
    out.form = first.form;
    out.second = second.op;
    out.second_microbatch = second.microbatch;
    out.second_form = second.form;
    out.duration = count<Time>(in.duration_ps(), place.of("pair.duration_ps"));
  }

  void decode_copy(const v1::Step& in, const Place& place, Step& out) {
    out.kind = StepKind::copy;
    switch (in.copy().source()) {
      case v1::SOURCE_RELEASE_KEEP:
        out.source = SourceRelease::keep;
        break;
      case v1::SOURCE_RELEASE_WHOLE:
        out.source = SourceRelease::whole;
        break;
      case v1::SOURCE_RELEASE_PROGRESSIVE:
        out.source = SourceRelease::progressive;
        break;
      default:
        error(place.of("copy.source"), "expected KEEP, WHOLE or PROGRESSIVE");
    }
    if (in.instance() != 0) error(place, "a copy has the instance of the buffer that it writes");
    if (in.reads_size() != 1 || in.writes_size() != 1)
      return error(place, fmt::format("a copy reads one buffer and writes one, not {} and {}",
                                      in.reads_size(), in.writes_size()));
    const std::uint32_t written = in.writes(0);
    if (written >= plan_.buffers.size()) return;  // reported with the list
    out.microbatch = plan_.buffers[written].microbatch;
    out.instance = plan_.buffers[written].instance;
  }

  void decode_reduce(const v1::Step& in, const Place& place, Step& out) {
    out.kind = StepKind::reduce;
    const v1::Reduce& it = in.reduce();
    for (const std::uint32_t first : {it.first_part(), it.brings_part()})
      if (it.parts() == 0 || it.parts() > it.of_parts() || first > it.of_parts() - it.parts())
        error(place.of("reduce"),
              fmt::format("there are no {} parts from part {} on among {}, counted from 0",
                          it.parts(), first, it.of_parts()));
    if (it.opens_parts() > 2 * std::uint64_t{it.of_parts()})
      error(
          place.of("reduce"),
          fmt::format("a collective of {} parts reads and writes at most {} in a memory; found {}",
                      it.of_parts(), 2 * std::uint64_t{it.of_parts()}, it.opens_parts()));
    if (in.instance() != 0) error(place, "a reduction has no instance");
    out.reduction = static_cast<std::uint32_t>(plan_.reductions.size());
    Reduction& reduction = plan_.reductions.emplace_back();
    reduction = {.first = it.first_part(),
                 .count = it.parts(),
                 .of = it.of_parts(),
                 .adds = it.adds(),
                 .opens = it.opens_parts(),
                 .collective = it.collective()};
    if (it.has_brings_part()) reduction.brings = it.brings_part();
    if (!it.op().empty()) reduction.op = op_named(it, place.of("reduce"));
  }

  template <class Ids>
  Slice decode_buffers(const Ids& ids, const Place& place) {
    const auto begin = static_cast<std::uint32_t>(plan_.buffer_lists.size());
    for (const std::uint32_t id : ids) {
      if (diagnostics_.is_full()) break;
      plan_.buffer_lists.push_back(buffer(id, place));
    }
    return {begin, static_cast<std::uint32_t>(plan_.buffer_lists.size())};
  }

  /// Visits the steps of a list; each once where there are more of them than the plan has steps.
  template <class Ids>
  void for_steps(const Ids& ids, const Place& place, auto visit) {
    const bool repeats = ids.size() > in_.steps_size();
    if (repeats) {
      listed_.grow(static_cast<std::size_t>(in_.steps_size()));
      listed_.clear();
    }
    for (const std::uint32_t id : ids) {
      if (diagnostics_.is_full()) return;
      const StepId found = step(id, place);
      const bool is_known = id < static_cast<std::uint32_t>(in_.steps_size());
      if (!repeats || (is_known && listed_.insert(found))) visit(found);
    }
  }

  Slice decode_after(const v1::Step& in, const Place& place) {
    const auto begin = static_cast<std::uint32_t>(plan_.dependencies.size());
    const auto wait_for = [&](Dependency::Edge edge) {
      return [&, edge](StepId on) { plan_.dependencies.push_back({on, edge}); };
    };
    for_steps(in.after_end(), place.of("after_end"), wait_for(Dependency::Edge::after_end));
    for_steps(in.after_start(), place.of("after_start"), wait_for(Dependency::Edge::after_start));
    return {begin, static_cast<std::uint32_t>(plan_.dependencies.size())};
  }

  void decode_step(const v1::Step& in, const Place& place) {
    Step out;
    if (in.has_lane())
      out.lane = index<LaneId>(in.lane(), in_.lanes_size(), "lane", place);
    else
      error(place, "names no lane");
    out.instance = in.instance();
    if (in.has_duration_ps() && in.work_case() != v1::Step::kCompute)
      error(place.of("duration_ps"), "is of a compute alone");
    if (in.has_workspace_offset_bytes())
      out.workspace_offset =
          count<Bytes>(in.workspace_offset_bytes(), place.of("workspace_offset_bytes"));
    switch (in.work_case()) {
      case v1::Step::kCompute:
        decode_compute(in.compute(), place, out);
        if (in.has_duration_ps())
          out.duration = count<Time>(in.duration_ps(), place.of("duration_ps"));
        break;
      case v1::Step::kPair:
        decode_pair(in.pair(), place, out);
        break;
      case v1::Step::kCopy:
        decode_copy(in, place, out);
        break;
      case v1::Step::kReduce:
        decode_reduce(in, place, out);
        break;
      case v1::Step::WORK_NOT_SET:
        error(place, "is neither compute nor pair nor copy nor reduce");
        break;
    }
    out.reads = decode_buffers(in.reads(), place.of("reads"));
    out.writes = decode_buffers(in.writes(), place.of("writes"));
    out.after = decode_after(in, place);
    plan_.steps.push_back(out);
  }

  void decode_release(const v1::Release& in, const Place& place) {
    Release out;
    if (in.has_buffer())
      out.buffer = buffer(in.buffer(), place);
    else
      error(place, "names no buffer");
    out.after.begin = static_cast<std::uint32_t>(plan_.release_steps.size());
    for_steps(in.after(), place.of("after"), [&](StepId on) { plan_.release_steps.push_back(on); });
    out.after.end = static_cast<std::uint32_t>(plan_.release_steps.size());
    plan_.releases.push_back(out);
  }

  template <class Message, class Estimates>
  void decode_common(const Message& in, std::string_view name, Estimates& out) {
    const Place place{name};
    if (in.has_makespan_ps()) out.makespan = count<Time>(in.makespan_ps(), place.of("makespan_ps"));
    if (in.has_period_ps()) out.period = count<Time>(in.period_ps(), place.of("period_ps"));
    decode_peaks(in.peak(), place.of("peak"), out.peak);
  }

  void decode_peaks(const auto& in, const Place& place,
                    std::vector<std::pair<MemoryId, Bytes>>& out) {
    for (const v1::MemoryBytes& peak : in)
      out.emplace_back(memory(peak.memory(), place), count<Bytes>(peak.peak_bytes(), place));
  }

  void decode_claims() {
    const v1::Claims& in = in_.claims();
    decode_common(in, "claims", plan_.claims);
    plan_.claims.in_flight.assign(in.in_flight().begin(), in.in_flight().end());
    if (in.has_model_makespan_ps())
      plan_.claims.model_makespan =
          count<Time>(in.model_makespan_ps(), Place{"claims"}.of("model_makespan_ps"));
    if (in.has_model_period_ps())
      plan_.claims.model_period =
          count<Time>(in.model_period_ps(), Place{"claims"}.of("model_period_ps"));
    decode_peaks(in.model_peak(), Place{"claims"}.of("model_peak"), plan_.claims.model_peak);
    if (in.has_optimal()) plan_.claims.optimal = in.optimal();
    plan_.claims.chosen = in.chosen();
    for (const v1::LeftOut& it : in.left_out())
      plan_.claims.left_out.push_back({it.policy(), it.why()});
    if (in.has_eviction()) decode_eviction(in.eviction());
    decode_energy(in, "claims", plan_.claims.energy);
  }

  template <class Message>
  void decode_energy(const Message& in, std::string_view name, std::optional<Energy>& out) {
    if (!in.has_energy_zj()) return;
    out = energy_of(in.energy_zj());
    if (!out)
      error({name, -1, "energy_zj"},
            fmt::format("`{}` is not an integer of at most 38 decimal digits",
                        excerpt(in.energy_zj())));
  }

  void decode_eviction(const v1::Eviction& in) {
    const Place place{"claims"};
    EvictionClaims& out = plan_.claims.eviction.emplace();
    out.evictions = in.evictions();
    out.evicted_bytes = count<Bytes>(in.evicted_bytes(), place.of("eviction"));
    out.score_evaluations = in.score_evaluations();
    out.searches = in.searches();
    out.mean_fragmentation = count<Ratio>(in.mean_fragmentation_ppb(), place.of("eviction"));
  }

  const v1::Plan& in_;
  const PlanPlaces& places_;
  const Workload& workload_;
  PlanNames tensors_, operators_, processors_, memories_, links_;
  Diagnostics diagnostics_;
  int suggestions_left_ = 10;
  IdSet<StepId> listed_{0};  ///< of the list that is looked at
  Plan plan_;
};

}  // namespace

Plan decode_plan(const plan::v1::Plan& message, const PlanPlaces& places, const Workload& workload,
                 const Platform& platform) {
  return Decoder(message, places, workload, platform).decode();
}

}  // namespace plimsoll
