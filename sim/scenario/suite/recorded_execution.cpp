#include "scenario/suite/recorded_execution.hpp"

#include "execution/observer.hpp"
#include "plan/core/readers.hpp"
#include "plan/file/plan_file.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::string_view kPlan = "plan ";
constexpr std::size_t kDigestDigits = 16;

/// Names may come from other tools' files: what separates the fields of a line is no part of them.
std::string without_separators(std::string text, bool with_spaces) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '|' || (c == ' ' && !with_spaces)) c = '_';
  }
  return text;
}

/// Notes which step frees which buffers: a release follows at once from the end of a step.
class Releases final : public Observer {
 public:
  explicit Releases(std::size_t steps) : freed_(steps) {}

  void step_ended(StepId step, Time /*now*/) override { last_ended_ = step; }
  void buffer_freed(BufferId buffer, Time /*now*/) override {
    if (last_ended_ != kNoStep) freed_[index(last_ended_)].push_back(buffer);
  }

  [[nodiscard]] std::span<const BufferId> by(StepId step) const { return freed_[index(step)]; }

 private:
  StepId last_ended_ = kNoStep;
  std::vector<std::vector<BufferId>> freed_;  ///< by step
};

class Recorder {
 public:
  Recorder(const RunResult& result, const Platform& platform)
      : result_(result),
        plan_(result.plan),
        platform_(platform),
        releases_(result.plan.steps.size()) {}

  RecordedExecution run() {
    const Topology topology(platform_);
    (void)execute(lower(plan_, result_.workload_as_run, platform_, topology), releases_);
    std::vector<std::uint32_t> order(plan_.steps.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {},
                             [&](std::uint32_t s) { return result_.execution.start[s]; });
    RecordedExecution recorded{plan_digest(result_, platform_), {}};
    for (const std::uint32_t s : order)
      if (!result_.execution.end[s].is_unlimited()) recorded.steps.push_back(step_of(s));
    return recorded;
  }

 private:
  [[nodiscard]] PlayedStep step_of(std::uint32_t s) const {
    const Execution& execution = result_.execution;
    const Step& step = plan_.steps[s];
    PlayedStep recorded{execution.start[s].count(),
                        (execution.end[s] - execution.start[s]).count(),
                        lane_of(plan_[step.lane]),
                        what_of(s),
                        {}};
    for (const BufferId buffer : plan_.list(step.writes))
      recorded.tensors.push_back({false, tensor_name(buffer),
                                  result_.workload_as_run[plan_[buffer].tensor].bytes.count()});
    for (const BufferId buffer : releases_.by(StepId{s}))
      recorded.tensors.push_back({true, tensor_name(buffer), 0});
    return recorded;
  }

  [[nodiscard]] std::string what_of(std::uint32_t s) const {
    const Step& step = plan_.steps[s];
    std::string what = describe(plan_, StepId{s}, result_.workload_as_run, platform_);
    if (step.source == SourceRelease::whole) what += ", which moves it";
    if (step.source == SourceRelease::progressive) what += ", which moves it byte by byte";
    return without_separators(std::move(what), true);
  }

  [[nodiscard]] std::string lane_of(const Lane& lane) const {
    std::string name;
    if (lane.kind == Lane::Kind::channel)
      name = platform_[lane.from].name + '>' + platform_[lane.to].name;
    else
      name = platform_[lane.processor].name;
    if (lane.stream > 0) name += fmt::format(".{}", lane.stream);
    return without_separators(std::move(name), false);
  }

  [[nodiscard]] std::string tensor_name(BufferId id) const {
    return without_separators(result_.workload_as_run[plan_[id].tensor].name, false);
  }

  const RunResult& result_;
  const Plan& plan_;
  const Platform& platform_;
  Releases releases_;
};

/// Takes what is before `separator`, and it, from the front of `text`; nothing where it is not
/// there.
std::optional<std::string_view> take(std::string_view& text, std::string_view separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + separator.size());
  return taken;
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<RecordedTensor> parse_tensor(std::string_view text) {
  if (text.starts_with('-') && text.size() > 1)
    return RecordedTensor{true, std::string(text.substr(1)), 0};
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with('+') || colon == std::string_view::npos) return std::nullopt;
  const auto bytes = number(text.substr(colon + 1));
  if (!bytes) return std::nullopt;
  return RecordedTensor{false, std::string(text.substr(1, colon - 1)), *bytes};
}

std::optional<PlayedStep> parse_step(std::string_view line) {
  const auto start = take(line, " +");
  const auto duration = take(line, " ");
  const auto lane = take(line, " | ");
  const auto what = take(line, " |");
  if (!start || !duration || !lane || !what) return std::nullopt;
  const auto from = number(*start), lasting = number(*duration);
  if (!from || !lasting) return std::nullopt;
  PlayedStep step{*from, *lasting, std::string(*lane), std::string(*what), {}};
  while (!line.empty()) {
    if (!line.starts_with(' ')) return std::nullopt;
    line.remove_prefix(1);
    const std::size_t end = std::min(line.find(' '), line.size());
    const auto tensor = parse_tensor(line.substr(0, end));
    if (!tensor) return std::nullopt;
    step.tensors.push_back(*tensor);
    line.remove_prefix(end);
  }
  return step;
}

}  // namespace

std::string plan_digest(const RunResult& result, const Platform& platform) {
  Plan bare = result.plan;
  bare.claims = {};
  bare.bounds = {};
  return digest_of(to_bytes(bare, PlanForm::binary, result.workload_as_run, platform));
}

std::string digest_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", hash);
}

std::optional<RecordedExecution> record_execution(const RunResult& result,
                                                  const Platform& platform) {
  if (result.infeasible || result.plan.steps.size() > kMostRecordedSteps) return std::nullopt;
  return Recorder(result, platform).run();
}

std::string to_text(const RecordedExecution& execution) {
  std::string text = fmt::format("{}{}\n", kPlan, execution.plan);
  for (const PlayedStep& step : execution.steps) {
    text += fmt::format("{} +{} {} | {} |", step.start, step.duration, step.lane, step.what);
    for (const RecordedTensor& tensor : step.tensors)
      text +=
          tensor.is_freed ? " -" + tensor.name : fmt::format(" +{}:{}", tensor.name, tensor.bytes);
    text += '\n';
  }
  return text;
}

std::optional<RecordedExecution> parse_execution(std::string_view text) {
  if (text.size() > kMostRecordedBytes || !text.starts_with(kPlan)) return std::nullopt;
  text.remove_prefix(kPlan.size());
  const auto plan = take(text, "\n");
  if (!plan || plan->size() != kDigestDigits) return std::nullopt;
  RecordedExecution execution{std::string(*plan), {}};
  while (!text.empty()) {
    const auto line = take(text, "\n");
    if (!line || execution.steps.size() == kMostRecordedSteps) return std::nullopt;
    auto step = parse_step(*line);
    if (!step) return std::nullopt;
    execution.steps.push_back(std::move(*step));
  }
  return execution;
}

}  // namespace plimsoll
