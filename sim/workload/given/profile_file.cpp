#include "workload/given/given_operators.hpp"
#include "workload/given/profile_workload.hpp"

#include <map>
#include <set>
#include <string_view>

namespace plimsoll {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

/// What stands under `profile`.
struct Recording {
  std::string recorded;
  NamedBytes inputs, parameters, buffers;
  std::vector<RecordedOperator> operators;
  std::int64_t version = kProfileVersion;
};

Format<OperatorClass> class_format() {
  std::vector<std::pair<std::string, OperatorClass>> words;
  for (std::size_t i = 0; i < kOperatorClasses; ++i) {
    const auto operator_class = static_cast<OperatorClass>(i);
    words.emplace_back(to_text(operator_class), operator_class);
  }
  return one_of<OperatorClass>(std::move(words));
}

/// The fields of forwards and backwards alike.
Record<RecordedStep> step_record(const std::string& title, const std::string& text) {
  using Step = RecordedStep;
  Record<Step> record(title, text);
  record.required("time", &Step::time, quantity<Time>(), "how long it took")
      .optional("reads", &Step::reads, list_of(located(name()), 0, kMostNames), "storages")
      .optional("updates", &Step::updates, list_of(located(name()), 0, kMostNames),
                "those of `reads` that it changes in place")
      .optional("makes", &Step::makes, map_of(quantity<Bytes>()), "storages that others read")
      .optional("workspace", &Step::workspace, quantity<Bytes>(),
                "while it runs, beyond what it leaves; default 0 B");
  return record;
}

Format<RecordedStep> forward_format() {
  return step_record("forward", "An operator's forward.")
      .optional("keeps", &RecordedStep::keeps, map_of(quantity<Bytes>()),
                "storages that only backwards read")
      .format();
}

Format<RecordedStep> backward_format() {
  return step_record("backward", "An operator's backward.")
      .optional("gradients", &RecordedStep::gradients, list_of(located(name()), 0, kMostNames),
                "the parameters to whose gradients it adds")
      .format();
}

Format<RecordedOperator> recorded_operator_format() {
  using Spec = RecordedOperator;
  return Record<Spec>("recorded operator", "An operator as it ran.")
      .where(&Spec::where)
      .required("name", &Spec::name, name(), "unique in the profile")
      .optional("class", &Spec::operator_class, class_format(), "default other")
      .required("forward", &Spec::forward, forward_format(), "")
      .optional("backward", &Spec::backward, backward_format(),
                "left out where nothing before it is trained")
      .format();
}

/// Follows a profile in the order of its execution.
class ProfileChecker {
 public:
  explicit ProfileChecker(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void check(const Recording& recording) {
    for (const NamedBytes* there : {&recording.inputs, &recording.parameters, &recording.buffers})
      make(*there, Origin::resident);
    for (const auto& [parameter, bytes] : recording.parameters) parameters_.insert(parameter.value);
    for (const RecordedOperator& op : recording.operators) {
      check_step(op.forward);
      make(op.forward.makes, Origin::step);
      make(op.forward.keeps, Origin::step);
    }
    for (std::size_t i = recording.operators.size(); i-- > 0;) {
      if (!recording.operators[i].backward) continue;
      const RecordedStep& backward = *recording.operators[i].backward;
      check_step(backward);
      check_gradients(backward);
      make(backward.makes, Origin::step);
    }
  }

 private:
  enum class Origin : std::uint8_t { resident, step };

  void make(const NamedBytes& storages, Origin origin) {
    for (const auto& [storage, bytes] : storages)
      if (!made_.emplace(storage.value, origin).second)
        diagnostics_.error(storage.where, "the storage `" + storage.value + "` is made twice");
  }

  void check_step(const RecordedStep& step) {
    std::set<std::string_view> reads;
    for (const Located<std::string>& read : step.reads) {
      if (!reads.insert(read.value).second)
        diagnostics_.error(read.where, "`" + read.value + "` is named twice");
      else if (!made_.contains(read.value))
        diagnostics_.error(read.where, "`" + read.value + "` is read before anything makes it",
                           suggest(read.value));
    }
    std::set<std::string_view> updates;
    for (const auto& [update, where] : step.updates) {
      const auto found = made_.find(update);
      if (!updates.insert(update).second)
        diagnostics_.error(where, "`" + update + "` is named twice");
      else if (!reads.contains(update))
        diagnostics_.error(where, "`" + update + "` is changed in place, but not read");
      else if (found != made_.end() && found->second == Origin::resident)
        diagnostics_.error(where, "`" + update +
                                      "` is there throughout, so it cannot be changed in place; "
                                      "expected what an operator makes");
    }
  }

  void check_gradients(const RecordedStep& backward) {
    std::set<std::string_view> seen;
    for (const auto& [parameter, where] : backward.gradients) {
      if (!seen.insert(parameter).second)
        diagnostics_.error(where, "`" + parameter + "` is named twice");
      else if (!parameters_.contains(parameter))
        diagnostics_.error(where, "unknown parameter `" + parameter + "`");
    }
  }

  /// The nearest name; for the first few errors of a file of usual size only, to bound the search.
  std::string suggest(const std::string& storage) {
    constexpr int kSuggestions = 20;
    constexpr std::size_t kCandidates = 10'000;
    if (unknown_++ >= kSuggestions || made_.size() > kCandidates) return {};
    std::vector<std::string> names;
    for (const auto& [made, origin] : made_) names.push_back(made);
    return did_you_mean(storage, names);
  }

  Diagnostics& diagnostics_;
  std::map<std::string, Origin> made_;
  std::set<std::string> parameters_;
  int unknown_ = 0;
};

void check_version(Recording& recording, const Node& node, Diagnostics& diagnostics) {
  if (recording.version == kProfileVersion) return;
  const Node* version = node.find("version");
  diagnostics.error(version->where(), "this profile is of version " +
                                          std::to_string(recording.version) +
                                          "; expected version " + std::to_string(kProfileVersion));
}

Format<Recording> recording_format() {
  constexpr std::int64_t kMostVersions = 1'000'000;
  const auto operators =
      checked<std::vector<RecordedOperator>>(list_of(recorded_operator_format(), 1, kMaxStages),
                                             [](const Node& node, Diagnostics& diagnostics) {
                                               if (node.is_sequence())
                                                 check_names(node, "operator", diagnostics);
                                             });
  Record<Recording> record("profile", "A training step as it was recorded.");
  record
      .required("version", &Recording::version, integer(1, kMostVersions),
                "of this format: " + std::to_string(kProfileVersion))
      .optional("recorded", &Recording::recorded, text(), "where and how, for people")
      .optional("inputs", &Recording::inputs, map_of(quantity<Bytes>()),
                "storages that are there from the start")
      .optional("parameters", &Recording::parameters, map_of(quantity<Bytes>()), "")
      .optional("buffers", &Recording::buffers, map_of(quantity<Bytes>()),
                "of the network: there throughout, not trained")
      .required("operators", &Recording::operators, operators,
                "in the order of their forwards; backwards run in reverse");
  record.check({"version"}, check_version);
  record.check({"inputs", "parameters", "buffers", "operators"},
               [](Recording& recording, const Node&, Diagnostics& diagnostics) {
                 ProfileChecker(diagnostics).check(recording);
               });
  return record.format();
}

struct ProfileFile {
  Location where;
  std::string name;
  Recording profile;
  std::optional<std::int64_t> batch;
  std::optional<Optimizer> optimizer;
};

}  // namespace

Format<ProfileSpec> profile_format() {
  auto file =
      Record<ProfileFile>("profile workload", "A training step with measured times.")
          .where(&ProfileFile::where)
          .required("workload", &ProfileFile::name, name(), "the workload's name")
          .required("profile", &ProfileFile::profile, recording_format(), "the recording")
          .optional("batch", &ProfileFile::batch, batch_format(),
                    "samples of the recorded step; default 1")
          .optional("optimizer", &ProfileFile::optimizer, optimizer_format(), "default none")
          .format();
  return mapped<ProfileFile, ProfileSpec>(std::move(file), [](ProfileFile f) {
    return ProfileSpec{std::move(f.where),
                       std::move(f.name),
                       std::move(f.profile.recorded),
                       std::move(f.profile.inputs),
                       std::move(f.profile.parameters),
                       std::move(f.profile.buffers),
                       std::move(f.profile.operators),
                       f.batch,
                       f.optimizer};
  });
}

}  // namespace plimsoll
