#include "scenario/document/search_path.hpp"

#include "scenario/document/document_kind.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExtension = ".yaml";
/// Where scenarios are looked up by their names.
constexpr const char* kScenarioKinds[] = {"scenarios", "scenarios/what-if", "scenarios/papers"};

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(kExtension);
}

/// The kind of what lies in a folder of this name: "platforms", "workloads", "scenarios/what-if".
DocumentKind kind_in(const std::string& folder) {
  if (folder == "platforms") return DocumentKind::platform;
  return folder == "workloads" ? DocumentKind::workload : DocumentKind::scenario;
}

/// Nothing for a file that is none of them or cannot be read.
std::optional<DocumentKind> kind_of_file(const fs::path& path) {
  constexpr DocumentLimits kLimits{.bytes = 4 << 20};
  try {
    return kind_of(read_document(path, kLimits));
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<fs::path> share_folders() {
  std::vector<fs::path> folders;
  if (const char* listed = std::getenv("PLIMSOLL_PATH")) {
    std::string rest = listed;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) folders.emplace_back(rest.substr(0, colon));
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  }
  // An installation may have been moved: its share folder is beside its bin folder.
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path() / "../share/plimsoll");
  folders.emplace_back(PLIMSOLL_SHARE_DIR);
  folders.emplace_back(PLIMSOLL_SOURCE_SHARE_DIR);
  return folders;
}

SearchPath::SearchPath(fs::path folder) {
  folders_.push_back(std::move(folder));
  for (fs::path& other : share_folders()) folders_.push_back(std::move(other));
}

std::optional<fs::path> SearchPath::find(const std::string& name, const std::string& kind) const {
  std::error_code ignored;
  if (is_path(name)) {
    const fs::path path = fs::path(name).is_absolute() ? fs::path(name) : folders_.front() / name;
    return path.lexically_normal();
  }
  for (const fs::path& folder : folders_) {
    const fs::path here = folder / (name + kExtension);
    if (fs::is_regular_file(here, ignored) &&
        kind_of_file(here).value_or(kind_in(kind)) == kind_in(kind))
      return here.lexically_normal();
    const fs::path below = folder / kind / (name + kExtension);
    if (fs::is_regular_file(below, ignored)) return below.lexically_normal();
  }
  return std::nullopt;
}

Node SearchPath::read(const std::string& name, const std::string& kind,
                      const Location& where) const {
  const auto path = find(name, kind);
  if (!path) {
    const fs::path here = (folders_.front() / (name + kExtension)).lexically_normal();
    const auto is = kind_of_file(here);
    refuse(where, fmt::format("there is no {} `{}`", name_of(kind_in(kind)), name),
           is ? fmt::format("`{}` is {}", here.string(), with_article(*is))
              : did_you_mean(name, names(kind)));
  }
  std::error_code ignored;
  if (fs::is_directory(*path, ignored))
    refuse(where, fmt::format("`{}` is a directory, expected a file", path->string()));
  if (!fs::exists(*path, ignored))
    refuse(where, fmt::format("there is no file `{}`", path->string()));
  Node document = read_document(*path);
  if (const auto is = kind_of(document); is && *is != kind_in(kind))
    refuse(where, fmt::format("`{}` is {}; expected {}", path->string(), with_article(*is),
                              with_article(kind_in(kind))));
  return document;
}

std::vector<std::string> SearchPath::names(const std::string& kind) const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const fs::path& folder : folders_) {
    for (const auto& entry : fs::directory_iterator(folder / kind, ignored))
      if (entry.path().extension() == kExtension) names.insert(entry.path().stem().string());
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (entry.path().extension() == kExtension && entry.is_regular_file(ignored) &&
          kind_of_file(entry.path()) == kind_in(kind))
        names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

std::string scenario_kind(const SearchPath& search, const std::string& name) {
  const auto kind = std::ranges::find_if(
      kScenarioKinds, [&](const char* it) { return search.find(name, it).has_value(); });
  return kind != std::end(kScenarioKinds) ? *kind : kScenarioKinds[0];
}

fs::path scenario_file(const SearchPath& search, const std::string& name, const Location& where) {
  std::error_code ignored;
  const auto path = search.find(name, scenario_kind(search, name));
  if (path && fs::is_regular_file(*path, ignored)) return *path;
  std::vector<std::string> names;
  for (const char* kind : kScenarioKinds)
    std::ranges::copy(search.names(kind), std::back_inserter(names));
  refuse(where, fmt::format("there is no scenario `{}`", name), did_you_mean(name, names));
}

fs::path scenario_argument(const std::string& name) {
  std::error_code ignored;
  if (is_path(name) || fs::exists(name, ignored)) return name;
  return scenario_file(SearchPath("."), name, Location{name, 0, 0});
}

PlatformResolver resolver_of_extends() {
  return [](const Located<std::string>& name) -> std::optional<Node> {
    const SearchPath beside(fs::path(name.where.origin).parent_path());
    if (!beside.find(name.value, "platforms")) return std::nullopt;
    return beside.read(name.value, "platforms", name.where);
  };
}

}  // namespace plimsoll
