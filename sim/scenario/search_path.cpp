#include "scenario/search_path.hpp"

#include <cstdlib>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExtension = ".yaml";

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(kExtension);
}

/// "platforms", "workloads", "scenarios", or nothing for a file that is none or cannot be read.
std::string kind_of(const fs::path& path) {
  constexpr DocumentLimits kLimits{.bytes = 4 << 20};
  try {
    const Node document = read_document(path, kLimits);
    // A scenario has the other keys, too; a calibration, which nothing names, has one of them.
    if (document.find("scenario") != nullptr) return "scenarios";
    if (document.find("calibration") != nullptr) return {};
    if (document.find("platform") != nullptr) return "platforms";
    if (document.find("workload") != nullptr) return "workloads";
  } catch (const InputError&) {
    return {};
  }
  return {};
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
  for (const fs::path& folder : folders_)
    for (const fs::path& candidate :
         {folder / (name + kExtension), folder / kind / (name + kExtension)})
      if (fs::is_regular_file(candidate, ignored)) return candidate.lexically_normal();
  return std::nullopt;
}

Node SearchPath::read(const std::string& name, const std::string& kind,
                      const Location& where) const {
  if (const auto path = find(name, kind)) {
    std::error_code ignored;
    if (fs::exists(*path, ignored) && !fs::is_directory(*path, ignored))
      return read_document(*path);
    const bool is_folder = fs::is_directory(*path, ignored);
    throw InputError(
        {{Severity::error, where,
          is_folder ? fmt::format("`{}` is a directory, expected a file", path->string())
                    : fmt::format("there is no file `{}`", path->string()),
          ""}});
  }
  const std::string singular = kind.substr(0, kind.size() - 1);
  throw InputError({{Severity::error, where, fmt::format("there is no {} `{}`", singular, name),
                     did_you_mean(name, names(kind))}});
}

std::vector<std::string> SearchPath::names(const std::string& kind) const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const fs::path& folder : folders_) {
    for (const auto& entry : fs::directory_iterator(folder / kind, ignored))
      if (entry.path().extension() == kExtension) names.insert(entry.path().stem().string());
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (entry.path().extension() == kExtension && entry.is_regular_file(ignored) &&
          kind_of(entry.path()) == kind)
        names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

PlatformResolver resolver_of_extends() {
  return [](const Located<std::string>& name) -> std::optional<Node> {
    const SearchPath beside(fs::path(name.where.origin).parent_path());
    if (!beside.find(name.value, "platforms")) return std::nullopt;
    return beside.read(name.value, "platforms", name.where);
  };
}

}  // namespace plimsoll
