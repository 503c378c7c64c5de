/// Where a bare name of a platform or workload is looked up.
#pragma once

#include "base/document.hpp"
#include "platform/file/platform_file.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Where things that ship may lie, in this order: each folder of PLIMSOLL_PATH (colon-separated),
/// the installed share folder, the source tree that the program was built from.
[[nodiscard]] std::vector<std::filesystem::path> share_folders();

/// Folders searched for NAME.yaml itself, unless its keys say that it is of another kind, and for
/// `platforms/NAME.yaml` or `workloads/NAME.yaml`, in this order: next to the file that names it,
/// then the share_folders(). So a scenario may have the name of the platform that it is about.
class SearchPath {
 public:
  /// `folder` is that of the file that names things.
  explicit SearchPath(std::filesystem::path folder);

  /// Reads the document that `name` means: a path (it has a slash or ends in .yaml; relative to the
  /// folder) or a bare name of that kind: "platforms", "workloads", "scenarios" or a folder below
  /// that. Throws InputError at `where`, with the nearest known name or with what the file is
  /// instead.
  [[nodiscard]] Node read(const std::string& name, const std::string& kind,
                          const Location& where) const;

  /// The path that read() would open, or nothing.
  [[nodiscard]] std::optional<std::filesystem::path> find(const std::string& name,
                                                          const std::string& kind) const;

  /// All names of a kind, sorted, each once. A file that lies in a folder itself is of the kind
  /// that its keys say.
  [[nodiscard]] std::vector<std::string> names(const std::string& kind) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

/// The kind of SearchPath::find() under which a scenario of this name is: "scenarios", or one of the
/// folders below that in which scenarios ship; "scenarios" where there is none.
[[nodiscard]] std::string scenario_kind(const SearchPath& search, const std::string& name);

/// The file that the name of a scenario means, of any of these kinds. Throws InputError at `where`,
/// with the nearest known name.
[[nodiscard]] std::filesystem::path scenario_file(const SearchPath& search, const std::string& name,
                                                  const Location& where);

/// The same for an argument, where whatever is a path, or is there, is that file.
[[nodiscard]] std::filesystem::path scenario_argument(const std::string& name);

/// Finds what a platform `extends`: a path or a name, looked up next to the file that names it
/// first.
[[nodiscard]] PlatformResolver resolver_of_extends();

}  // namespace plimsoll
