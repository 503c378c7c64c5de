#include "platform/file/platform_file.hpp"

#include "platform/file/platform_builder.hpp"
#include "platform/file/platform_layers.hpp"
#include "platform/file/platform_provenance.hpp"
#include "platform/file/platform_spec.hpp"

#include <system_error>

namespace plimsoll {
namespace {

/// `extends: name` is NAME.yaml, `extends: folder/name.yaml` that path, beside the file that says
/// so.
std::optional<Node> find_beside(const Located<std::string>& name) {
  std::filesystem::path path = std::filesystem::path(name.where.origin).parent_path() / name.value;
  std::error_code ignored;
  if (path.extension() != ".yaml") path += ".yaml";
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return read_document(path.lexically_normal());
}

}  // namespace

Platform read_platform(const Node& node, Diagnostics& diagnostics,
                       const PlatformResolver& resolver) {
  if (!node.is_mapping()) {
    diagnostics.error(node.where(), "found " + node.describe() + ", expected a platform");
    return {};
  }
  const MergedPlatform merged = merge_layers(node, diagnostics, resolver);
  static const Format<PlatformSpec> kFormat = platform_format();
  const auto spec = kFormat.read(merged.document, diagnostics);
  Platform platform = spec ? build_platform(*spec, diagnostics) : Platform{};
  resolve_provenance(merged, platform, diagnostics);
  return platform;
}

Platform load_platform(const std::filesystem::path& path, Diagnostics& diagnostics) {
  Platform platform = read_platform(read_document(path), diagnostics, find_beside);
  diagnostics.throw_if_errors();
  return platform;
}

std::string platform_json_schema() {
  return json_schema(platform_format().shape, "platform");
}

}  // namespace plimsoll
