/// One YAML file as a located tree: the only way in which any file of a user enters the program.
///
/// The tree is built from yaml-cpp's events after a scan of the bytes. Refused, each with its
/// place: files above 32 MiB (before they are read), invalid UTF-8, NUL and other control bytes,
/// repeated keys, keys that are not scalars, quoted texts without an
/// end, second documents, tags, self-referencing anchors, and
/// anything beyond the caps on depth, nodes and alias expansion. Aliases are expanded; the copies
/// carry the position of the alias.
#pragma once

#include "base/diagnostic.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

struct DocumentLimits {
  std::uintmax_t bytes = std::uintmax_t{32} << 20;
  std::size_t depth = 64;
  std::size_t nodes = 4'000'000;  ///< after expansion of aliases; keys are not counted
};

/// A node of the tree. Plain value semantics; a mapping keeps the order of the file.
class Node {
 public:
  enum class Kind { null, scalar, sequence, mapping };
  struct Entry;

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
  [[nodiscard]] bool is_sequence() const { return kind_ == Kind::sequence; }
  [[nodiscard]] bool is_mapping() const { return kind_ == Kind::mapping; }
  [[nodiscard]] bool is_null() const { return kind_ == Kind::null; }

  [[nodiscard]] const std::string& scalar() const { return scalar_; }
  [[nodiscard]] bool is_quoted() const { return quoted_; }
  [[nodiscard]] const std::vector<Node>& items() const { return items_; }       ///< of a sequence
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }  ///< of a mapping
  /// The value under `key` of a mapping, or nullptr. O(entries).
  [[nodiscard]] const Node* find(std::string_view key) const;

  /// Where the node begins; the origin is shared by all nodes of a file.
  [[nodiscard]] Location where() const;

  /// "a mapping", "a list", "`12`", "nothing": for messages.
  [[nodiscard]] std::string describe() const;

  /// Sets the value at a dotted path below this mapping ("links.pcie.bandwidth"), making mappings
  /// on the way; `value` keeps its own origin. Existing lists are entered by index
  /// ("chain.0.saved"). Errors (a scalar on the way, an index out of range) go to `diagnostics`.
  void set(std::string_view path, Node value, Diagnostics& diagnostics);

 private:
  friend class DocumentBuilder;
  friend class RepeatExpander;
  /// One step of set(): the child named `step`, made where a mapping has none; nullptr after an
  /// error.
  Node* child_for_set(std::string_view step, const Node& value, std::string_view path,
                      Diagnostics& diagnostics);

  Kind kind_ = Kind::null;
  bool quoted_ = false;
  int line_ = 0;
  int column_ = 0;
  std::shared_ptr<const std::string> origin_;
  std::string scalar_;
  std::vector<Node> items_;
  std::vector<Entry> entries_;
};

struct Node::Entry {
  Node key;
  Node value;
};

/// Where to point for an error across the values under `keys` of a mapping: at the first of them
/// that came from elsewhere ("--set #2"), whole or in part; at the mapping where none did.
[[nodiscard]] Location place_of(const Node& mapping, std::span<const std::string> keys);

/// Parses `text`; `origin` names it in messages. Throws InputError. O(text).
[[nodiscard]] Node parse_document(std::string_view text, std::string origin,
                                  const DocumentLimits& limits = {});

/// Reads and parses a regular file. Throws InputError (missing, a directory, too large, not
/// readable).
[[nodiscard]] Node read_document(const std::filesystem::path& path,
                                 const DocumentLimits& limits = {});

/// Parses a value given on the command line (flow YAML: "25 GB/s", "[a, b]", "{x: 1 B}"). Its
/// places have no line: "--set #2" says enough.
[[nodiscard]] Node parse_value(std::string_view text, std::string origin);

}  // namespace plimsoll
