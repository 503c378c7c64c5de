#include "base/quantity_text.hpp"
#include "report/replay/replay_report.hpp"
#include "report/text/text_table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

const char* to_text(ReplayStep::What what) {
  constexpr std::array names{"granted", "refused", "freed", "awaited", "noted"};
  return names[static_cast<std::size_t>(what)];
}

namespace {

using Align = Column::Align;

class ReplayText {
 public:
  ReplayText(const ReplayReport& report, const Style& style) : report_(report), style_(style) {}

  std::string run() {
    headline();
    tell_steps();
    tell_peaks();
    if (report_.replayed.refusal)
      tell_refusal(*report_.replayed.refusal);
    else
      tell_cut(report_.replayed.cut, report_.replayed.cut_segments, "At the end");
    tell_comparison();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += wrapped(text, kReportWidth, 2) + '\n'; }
  void item(const std::string& text) { out_ += "  - " + wrapped(text, kReportWidth, 4) + '\n'; }

  void headline() {
    const Bytes capacity = report_.capacity;
    line(fmt::format("{}: {} on {}, {}", style_(Paint::bold, report_.name),
                     counted(report_.trace.steps.size(), "step"), report_.choice.label,
                     capacity.is_unlimited() ? "unlimited memory" : to_text(capacity)));
    out_ += '\n';
  }

  void tell_steps() {
    if (report_.steps.empty()) return;
    TextTable table({{"step", Align::right},
                     {"request"},
                     {"result"},
                     {"where"},
                     {"requested", Align::right},
                     {"allocated", Align::right},
                     {"active", Align::right},
                     {"reserved", Align::right},
                     {"inactive split", Align::right},
                     {"segments", Align::right}},
                    2);
    for (std::size_t s = 0; s < report_.steps.size(); ++s) {
      const ReplayStep& it = report_.steps[s];
      const bool is_bad = it.what == ReplayStep::What::refused;
      table.add({{std::to_string(s)},
                 {request_of(report_.trace.steps[s])},
                 {to_text(it.what), is_bad ? Paint::bad : Paint::none},
                 {where_of(it)},
                 {to_text(it.now.requested)},
                 {to_text(it.now.allocated)},
                 {to_text(it.now.active)},
                 {to_text(it.now.reserved)},
                 {to_text(it.inactive_split)},
                 {std::to_string(it.segments)}});
    }
    out_ += table.text(style_);
    if (report_.steps.size() < report_.replayed.steps)
      out_ += fmt::format("  and {} more; `--steps` shows more, `--json` has all\n",
                          report_.replayed.steps - report_.steps.size());
    out_ += '\n';
  }

  std::string request_of(const TraceStep& step) const {
    using Op = TraceStep::Op;
    if (step.op == Op::events_complete) return "events_complete";
    if (step.op == Op::attempt) return fmt::format("attempt {}", to_text(step.bytes));
    const std::string& name = report_.trace.blocks[step.block];
    if (step.op == Op::alloc) return fmt::format("alloc {} {}", name, to_text(step.bytes));
    return fmt::format("{} {}", to_text(step.op), name);
  }

  static std::string where_of(const ReplayStep& step) {
    if (!step.piece) return "";
    return fmt::format("segment {} at {}, {}", step.piece->segment, to_text(step.piece->offset),
                       to_text(step.piece->size));
  }

  void tell_peaks() {
    const Replayed& it = report_.replayed;
    const AllocatorUse& peak = it.counters.peak;
    line(
        fmt::format("Peaks: requested {}, allocated {}, active {}, reserved {}. At one time {} are "
                    "alive: no allocator needs less.",
                    to_text(peak.requested), to_text(peak.allocated), to_text(peak.active),
                    to_text(peak.reserved), to_text(it.load)));
    const auto times = [](std::int64_t count) {
      return counted(static_cast<std::size_t>(count), "time");
    };
    line(
        fmt::format("Segments were taken {}, given back {}; everything free was given back to ask "
                    "once more {}.",
                    times(it.counters.device_allocations), times(it.counters.device_frees),
                    times(it.counters.retries)));
  }

  static std::string gaps_in_words(const AllocatorUse& now, const MemoryGaps& gaps) {
    return fmt::format(
        "requested {}, allocated {}, reserved {}; of the reserved bytes {} are "
        "rounding, {} tails of blocks that were not split, {} holes",
        to_text(now.requested), to_text(now.allocated), to_text(now.reserved),
        to_text(gaps.rounding), to_text(gaps.tails), to_text(gaps.holes));
  }

  void tell_refusal(const ReplayRefusal& refusal) {
    out_ += '\n';
    line(style_(Paint::bad, "Out of memory") +
         fmt::format(" at step {}: {} asked, {} free, in pieces of at most {}", refusal.step,
                     to_text(refusal.asked), to_text(refusal.free), to_text(refusal.largest_free)));
    item(gaps_in_words(refusal.now, refusal.gaps));
    tell_cut(refusal.cut, refusal.cut_segments, "Then");
    std::vector<std::string> served;
    for (const ComparedReplay& other : report_.comparison)
      if (other.choice.settings.kind != AllocatorKind::ideal && serves(other.replayed, refusal))
        served.push_back(other.choice.label);
    if (served.empty())
      item("none of the allocators and settings below serves it");
    else
      item(fmt::format("served by: {}", fmt::join(served, "; ")));
  }

  void tell_cut(const std::vector<NamedCut>& cut, std::size_t count, const char* when) {
    if (cut.empty()) return;
    line(fmt::format("{} {} partly free and kept by blocks in use:", when,
                     counted(count, "segment") + (count == 1 ? " is" : " are")));
    for (const NamedCut& it : cut)
      item(fmt::format("segment {} ({}): {} free, in pieces of at most {}, kept by {}{}",
                       it.segment.number, to_text(it.segment.size), to_text(it.segment.free),
                       to_text(it.segment.largest_free), fmt::join(it.keepers, ", "),
                       it.others > 0 ? fmt::format(" and {} more", it.others) : ""));
    if (cut.size() < count) item(fmt::format("and {} more", count - cut.size()));
  }

  void tell_comparison() {
    if (report_.comparison.size() < 2) return;
    out_ += '\n';
    TextTable table({{"allocator"},
                     {"outcome"},
                     {"reserved", Align::right},
                     {"over load", Align::right},
                     {"retries", Align::right}});
    for (const ComparedReplay& it : report_.comparison) {
      const Replayed& other = it.replayed;
      const AllocatorUse& peak = other.counters.peak;
      const Bytes load = std::max(other.load, Bytes{1});
      table.add({{it.choice.label},
                 outcome_of(other),
                 {to_text(peak.reserved)},
                 {percent(static_cast<double>((peak.reserved - other.load).count()) /
                          static_cast<double>(load.count()))},
                 {std::to_string(other.counters.retries)}});
    }
    out_ += table.text(style_) + '\n';
    tell_expandable();
  }

  static Cell outcome_of(const Replayed& replayed) {
    if (!replayed.refusal) return {"ok", Paint::good};
    return {fmt::format("out of memory at step {}", replayed.refusal->step), Paint::bad};
  }

  /// Plain `caching` beside the same with expandable segments, where both were played.
  void tell_expandable() {
    const auto find = [&](bool expandable) -> const Replayed* {
      for (const ComparedReplay& it : report_.comparison)
        if (it.choice.settings == AllocatorSettings{.kind = AllocatorKind::caching,
                                                    .caching = {.expandable_segments = expandable}})
          return &it.replayed;
      return nullptr;
    };
    const Replayed *plain = find(false), *expandable = find(true);
    if (plain != nullptr && expandable != nullptr) line(answer(*plain, *expandable));
  }

  static std::string answer(const Replayed& plain, const Replayed& expandable) {
    if (plain.refusal && !expandable.refusal)
      return "Expandable segments would have helped: with them every request is served.";
    if (plain.refusal)
      return fmt::format(
          "Expandable segments would not have helped: memory runs out at step {} "
          "with them, at step {} without.",
          expandable.refusal->step, plain.refusal->step);
    if (expandable.refusal)
      return fmt::format(
          "Expandable segments would not have helped: memory runs out at step {} with them, and "
          "not without.",
          expandable.refusal->step);
    const Bytes before = plain.counters.peak.reserved, after = expandable.counters.peak.reserved;
    if (after < before)
      return fmt::format("Expandable segments would have helped: {} reserved instead of {}.",
                         to_text(after), to_text(before));
    return fmt::format("Expandable segments would not have helped: {} reserved instead of {}.",
                       to_text(after), to_text(before));
  }

  const ReplayReport& report_;
  const Style& style_;
  std::string out_;
};

}  // namespace

std::string replay_text(const ReplayReport& report, const Style& style) {
  return ReplayText(report, style).run();
}

}  // namespace plimsoll
