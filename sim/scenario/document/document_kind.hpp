/// The kind of a document, recognised by its keys.
#pragma once

#include "base/document.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

enum class DocumentKind : std::uint8_t {
  scenario,
  sweep,
  suite,
  lock,
  capacity,
  calibration,
  platform,
  workload,
};

/// In the order in which their keys count: a scenario has the keys `platform` and `workload`, too.
inline constexpr std::array kDocumentKinds{DocumentKind::scenario, DocumentKind::sweep,
                                           DocumentKind::suite,    DocumentKind::lock,
                                           DocumentKind::capacity, DocumentKind::calibration,
                                           DocumentKind::platform, DocumentKind::workload};

/// The key that makes a file one of these.
[[nodiscard]] const char* key_of(DocumentKind kind);

/// "capacity plan".
[[nodiscard]] const char* name_of(DocumentKind kind);

/// "a capacity plan".
[[nodiscard]] std::string with_article(DocumentKind kind);

/// Nothing where no key says it. What has a `platform` and a `workload` is a scenario that lacks
/// its name.
[[nodiscard]] std::optional<DocumentKind> kind_of(const Node& document);

/// Rejects a file of another kind with one sentence that names the right command, instead of
/// errors about all its keys. A file that also has the key of the expected kind is accepted. Throws
/// InputError.
void expect_kind(const Node& document, DocumentKind expected);

}  // namespace plimsoll
