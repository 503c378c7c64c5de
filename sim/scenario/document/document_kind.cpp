#include "scenario/document/document_kind.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct KindWords {
  const char *key, *name, *with_article;
  const char* command;  ///< nullptr: a file that another one names
};

const KindWords& words_of(DocumentKind kind) {
  static constexpr std::array<KindWords, kDocumentKinds.size()> kWords{
      {{"scenario", "scenario", "a scenario", "run"},
       {"sweep", "sweep", "a sweep", "sweep"},
       {"suite", "suite", "a suite", "check"},
       {"lock", "lock file", "the lock file of a suite", nullptr},
       {"capacity", "capacity plan", "a capacity plan", "capacity"},
       {"calibration", "calibration", "a calibration", "calibrate"},
       {"platform", "platform", "a platform", nullptr},
       {"workload", "workload", "a workload", nullptr}}};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string hint_for(DocumentKind kind, const std::string& file) {
  const KindWords& words = words_of(kind);
  if (words.command != nullptr)
    return fmt::format("`plimsoll {} {}` is for it", words.command, file);
  if (kind == DocumentKind::lock) return "`plimsoll check` reads it with its suite";
  return fmt::format("a scenario names it under `{}`", words.key);
}

}  // namespace

const char* key_of(DocumentKind kind) {
  return words_of(kind).key;
}

const char* name_of(DocumentKind kind) {
  return words_of(kind).name;
}

std::string with_article(DocumentKind kind) {
  return words_of(kind).with_article;
}

std::optional<DocumentKind> kind_of(const Node& document) {
  if (!document.is_mapping()) return std::nullopt;
  const auto found = std::ranges::find_if(
      kDocumentKinds, [&](DocumentKind kind) { return document.find(key_of(kind)) != nullptr; });
  if (found == kDocumentKinds.end()) return std::nullopt;
  const bool is_nameless_scenario =
      *found == DocumentKind::platform && document.find(key_of(DocumentKind::workload)) != nullptr;
  return is_nameless_scenario ? DocumentKind::scenario : *found;
}

void expect_kind(const Node& document, DocumentKind expected) {
  const auto kind = kind_of(document);
  if (!kind || *kind == expected || document.find(key_of(expected)) != nullptr) return;
  const Node* key = document.find(key_of(*kind));
  const Location& where = key != nullptr ? key->where() : document.where();
  refuse(where, fmt::format("this is {}; expected {}", with_article(*kind), with_article(expected)),
         hint_for(*kind, where.origin));
}

}  // namespace plimsoll
