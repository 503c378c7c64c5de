#include "scenario/suite/suite.hpp"

#include "base/document_scan.hpp"
#include "base/gather.hpp"
#include "scenario/document/document_kind.hpp"
#include "scenario/document/search_path.hpp"

#include <algorithm>
#include <glob.h>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostScenarios = 10'000;
constexpr const char* kNoBaseline = "none";

using WrittenTolerance = std::vector<std::pair<Metric, Ratio>>;

/// A scenario of a file, with changes.
struct WrittenReference {
  Location where;
  std::string from;
  std::optional<std::string> name;
  std::vector<Node> policies;
  std::vector<std::pair<Located<std::string>, Node>> set;
  WrittenTolerance tolerance;
  std::optional<bool> plans;
  std::optional<Node> expect;
};

struct WrittenSuite {
  Location where;
  std::string name;
  std::optional<Located<std::string>> baseline;
  bool plans = false, improvements_fail = false;
  WrittenTolerance tolerance;
  std::vector<Node> scenarios;
};

Format<WrittenReference> scenario_reference_format() {
  return Record<WrittenReference>("scenario of a suite", "A scenario of a file, with changes.")
      .where(&WrittenReference::where)
      .required("from", &WrittenReference::from, text(), "a name or a path")
      .optional("name", &WrittenReference::name, name(), "instead of its own")
      .optional("policies", &WrittenReference::policies, list_of(raw(), 1),
                "instead of its own, as in a scenario; a bare name keeps the parameters that the "
                "scenario gives it")
      .optional("set", &WrittenReference::set, map_of(raw()), "as `set` of a scenario")
      .optional("tolerance", &WrittenReference::tolerance, tolerance_format(), "beyond the suite's")
      .optional("plans", &WrittenReference::plans, boolean(), "instead of the suite's")
      .optional("expect", &WrittenReference::expect, raw(), "instead of its own")
      .format();
}

/// For the schema: what an item is depends on its keys.
Shape item_shape() {
  Shape path = text().shape;
  path.title = "a name, a path or a pattern";
  Shape in_place;
  in_place.text = "a scenario in place";
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = "a name, a path, a pattern or a mapping with `from` or `scenario`";
  shape.parts = {std::move(path), scenario_reference_format().shape, std::move(in_place)};
  return shape;
}

Format<WrittenSuite> suite_format() {
  using S = WrittenSuite;
  Format<Node> item = raw();
  item.shape = item_shape();
  return Record<S>("suite", "Scenarios, and what their results are held to.")
      .where(&S::where)
      .required("suite", &S::name, name(), "its name")
      .required("scenarios", &S::scenarios, list_of(item, 1, kMostScenarios), "what to run")
      .optional("baseline", &S::baseline, located(text()),
                "the lock file of recorded values, in the folder of the suite or below; `none`: "
                "there is none; default: the suite's own path, ending in .lock")
      .optional("tolerance", &S::tolerance, tolerance_format(),
                "by how much values may differ from recorded ones; default 0")
      .optional("plans", &S::plans, boolean(),
                "record executions, so that a failure is explained; default false")
      .optional("improvements", &S::improvements_fail,
                one_of<bool>({{"report", false}, {"fail", true}}),
                "what becomes of values that are better than recorded; default report")
      .format();
}

bool is_pattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

/// What a pattern below `folder` matches, sorted bytewise.
std::vector<fs::path> matches_of(const fs::path& folder, const std::string& pattern) {
  std::string whole;
  if (!fs::path(pattern).is_absolute())
    for (const char c : (folder / "").string()) {
      if (std::string_view("*?[\\").find(c) != std::string_view::npos) whole += '\\';
      whole += c;
    }
  whole += pattern;
  glob_t found{};
  std::vector<fs::path> paths;
  if (glob(whole.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  std::error_code ignored;
  std::erase_if(paths, [&](const fs::path& path) { return !fs::is_regular_file(path, ignored); });
  std::ranges::sort(paths);
  return paths;
}

class SuiteReader {
 public:
  SuiteReader(const Node& document, const fs::path& path)
      : document_(document), path_(path), search_(path.parent_path()) {}

  Suite run() {
    // A part that cannot be read does not keep the scenarios from being looked at.
    const WrittenSuite written =
        suite_format().read(document_, diagnostics_).value_or(scenarios_alone());
    suite_.name = written.name;
    suite_.where = written.where;
    suite_.improvements_fail = written.improvements_fail;
    suite_.baseline = baseline_of(written);
    usual_.tolerance = with({}, written.tolerance);
    usual_.records_executions = written.plans;
    for (const Node& item : written.scenarios) gather(diagnostics_, [&] { read_item(item); });
    refuse_repeated_names();
    diagnostics_.throw_if_errors();
    suite_.warnings = diagnostics_.warnings();
    return std::move(suite_);
  }

 private:
  /// Of a scenario, where it has none of its own.
  struct Settings {
    Tolerances tolerance;
    bool records_executions = false;
  };

  [[nodiscard]] WrittenSuite scenarios_alone() const {
    WrittenSuite written;
    const Node* scenarios = document_.find("scenarios");
    if (scenarios != nullptr) written.scenarios = scenarios->items();
    return written;
  }

  /// `--update` writes it: a suite from elsewhere is not to choose files all over the disk.
  [[nodiscard]] std::optional<fs::path> baseline_of(const WrittenSuite& written) {
    if (!written.baseline) return fs::path(path_).replace_extension(".lock");
    if (written.baseline->value == kNoBaseline) return std::nullopt;
    const fs::path named = fs::path(written.baseline->value).lexically_normal();
    if (named.is_absolute() || !named.has_filename() || named == "." || *named.begin() == "..")
      diagnostics_.error(
          written.baseline->where,
          fmt::format("`{}` is not in the folder of the suite or below; expected a "
                      "path there, such as `{}`",
                      excerpt(written.baseline->value),
                      fs::path(path_.filename()).replace_extension(".lock").string()));
    return (path_.parent_path() / named).lexically_normal();
  }

  void read_item(const Node& item) {
    if (item.is_scalar()) return read_paths(item);
    if (item.is_mapping() && item.find("scenario") != nullptr)
      return add(item.where(), item, path_.parent_path(), {}, usual_);
    if (!item.is_mapping())
      return diagnostics_.error(
          item.where(), fmt::format("found {}, expected {}", item.describe(), item_shape().title));
    const auto reference = scenario_reference_format().read(item, diagnostics_);
    if (!reference) return;
    const fs::path file = scenario_file(search_, reference->from, item.find("from")->where());
    Node document = read_scenario_file(file);
    if (reference->name) replace(document, "scenario", *item.find("name"));
    if (reference->expect) replace(document, "expect", *reference->expect);
    if (!reference->policies.empty()) replace_policies(document, *item.find("policies"));
    Overrides changes;
    changes.set_in_file = reference->set;
    const Settings settings{with(usual_.tolerance, reference->tolerance),
                            reference->plans.value_or(usual_.records_executions)};
    add(item.where(), document, file.parent_path(), changes, settings);
  }

  [[nodiscard]] static Node read_scenario_file(const fs::path& file) {
    Node document = read_document(file);
    expect_kind(document, DocumentKind::scenario);
    return document;
  }

  void replace(Node& document, std::string_view key, const Node& value) {
    if (document.is_mapping()) document.set(key, value, diagnostics_);
  }

  /// A bare name keeps the parameters that the scenario gives it.
  void replace_policies(Node& document, const Node& policies) {
    const Node* policy = document.find("policy");
    const std::vector<Node> given = policy == nullptr       ? std::vector<Node>{}
                                    : policy->is_sequence() ? policy->items()
                                                            : std::vector<Node>{*policy};
    replace(document, "policy", policies);
    for (std::size_t i = 0; i < policies.items().size(); ++i) {
      const Node& wanted = policies.items()[i];
      const auto same = std::ranges::find_if(given, [&](const Node& node) {
        const Node* name = node.is_mapping() ? node.find("name") : nullptr;
        return wanted.is_scalar() && name != nullptr && name->is_scalar() &&
               name->scalar() == wanted.scalar();
      });
      if (same != given.end()) replace(document, fmt::format("policy.{}", i), *same);
    }
  }

  void read_paths(const Node& item) {
    const std::string& text = item.scalar();
    if (!is_pattern(text))
      return add_file(item.where(), scenario_file(search_, text, item.where()));
    std::size_t added = 0;
    std::error_code ignored;
    for (const fs::path& file : matches_of(path_.parent_path(), text)) {
      if (fs::equivalent(file, path_, ignored)) continue;
      gather(diagnostics_, [&] { add_file(item.where(), file); });
      ++added;
    }
    if (added == 0) diagnostics_.error(item.where(), fmt::format("no file matches `{}`", text));
  }

  void add_file(const Location& where, const fs::path& file) {
    add(where, read_scenario_file(file), file.parent_path(), {}, usual_);
  }

  void add(const Location& where, const Node& document, const fs::path& folder, Overrides changes,
           const Settings& settings) {
    changes.is_held_to_expectation = true;
    SuiteScenario it{where, read_scenario(document, folder, changes), settings.tolerance,
                     settings.records_executions};
    for (const Diagnostic& d : it.scenario.warnings)
      diagnostics_.warning(d.where, d.message, d.hint);
    if (!suite_.baseline && !it.scenario.expect)
      diagnostics_.error(where, fmt::format("nothing holds scenario `{}` to anything; expected an "
                                            "`expect`, or a suite with a baseline",
                                            it.scenario.name));
    suite_.scenarios.push_back(std::move(it));
  }

  void refuse_repeated_names() {
    std::map<std::string, Location> seen;
    for (const SuiteScenario& it : suite_.scenarios) {
      const auto [first, is_new] = seen.emplace(it.scenario.name, it.where);
      if (!is_new)
        diagnostics_.error(it.where,
                           fmt::format("the suite has a scenario `{}` already, in line {}",
                                       it.scenario.name, first->second.line),
                           "give one of them another `name`");
    }
  }

  const Node& document_;
  const fs::path path_;
  const SearchPath search_;
  Diagnostics diagnostics_;
  Settings usual_;
  Suite suite_;
};

/// A scenario file as a suite of one.
Suite suite_of_one(const Node& document, const fs::path& path) {
  Overrides changes;
  changes.is_held_to_expectation = true;
  Suite suite;
  suite.where = document.where();
  suite.scenarios.push_back(
      {document.where(), read_scenario(document, path.parent_path(), changes), {}, false});
  const Scenario& scenario = suite.scenarios.front().scenario;
  suite.name = scenario.name;
  suite.warnings = scenario.warnings;
  if (scenario.expect) return suite;
  refuse(document.where(),
         fmt::format("scenario `{}` has no `expect`, so that there is nothing to check",
                     scenario.name),
         "a suite records what it costs (docs/regression.md)");
}

}  // namespace

Suite load_suite(const fs::path& path) {
  const Node document = read_document(path);
  if (document.find(key_of(DocumentKind::suite)) == nullptr &&
      kind_of(document) == DocumentKind::scenario)
    return suite_of_one(document, path);
  expect_kind(document, DocumentKind::suite);
  return SuiteReader(document, path).run();
}

std::string suite_schema() {
  return json_schema(suite_format().shape, "Plimsoll regression suite");
}

}  // namespace plimsoll
