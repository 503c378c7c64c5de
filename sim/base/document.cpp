#include "base/document.hpp"

#include "base/document_scan.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <istream>
#include <numeric>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace plimsoll {

namespace {

/// Hands the text to yaml-cpp block by block, and watches how far yaml-cpp reads ahead of its
/// events: it keeps every token of a list or mapping in brackets until the last bracket is closed,
/// some 300 bytes for each, so that a file of 32 MiB would take 8 GiB.
class WatchedText : public std::streambuf {
 public:
  WatchedText(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  /// An event came from this place.
  void reached(const YAML::Mark& mark) { last_event_ = mark; }

 protected:
  int_type underflow() override {
    if (next_ == text_.size()) return traits_type::eof();
    check_read_ahead();
    const std::string_view block = text_.substr(next_, kBlock);
    tokens_before_.push_back(tokens_);
    tokens_ += static_cast<std::size_t>(std::count_if(block.begin(), block.end(), may_be_token));
    next_ += block.size();
    // A get area is never written to.
    char* begin = const_cast<char*>(block.data());
    setg(begin, begin, begin + block.size());
    return traits_type::to_int_type(block.front());
  }

 private:
  static constexpr std::size_t kBlock = 2048;
  static constexpr std::size_t kMostTokensAhead = 2'000'000;

  static bool may_be_token(char c) {
    return std::string_view("[]{},:?-*&!\"'").find(c) != std::string_view::npos;
  }

  void check_read_ahead() const {
    const std::size_t block = static_cast<std::size_t>(std::max(last_event_.pos, 0)) / kBlock;
    if (block >= tokens_before_.size() || tokens_ - tokens_before_[block] <= kMostTokensAhead)
      return;
    refuse({origin_, last_event_.line + 1, last_event_.column + 1},
           "a list or mapping in brackets, or a line, of more than " +
               std::to_string(kMostTokensAhead) +
               " parts follows; write it in lines of `- item` or `key: value`");
  }

  std::string_view text_;
  const std::string& origin_;
  YAML::Mark last_event_;
  std::size_t next_ = 0;
  std::size_t tokens_ = 0;                  ///< characters handed out that may be tokens
  std::vector<std::size_t> tokens_before_;  ///< each block
};

/// yaml-cpp's complaints in our words; the texts are those of yaml-cpp/exceptions.h.
std::string in_our_words(const std::string& complaint) {
  const std::pair<const char*, const char*> kWords[] = {
      {YAML::ErrorMsg::END_OF_MAP,
       "the mapping ends where another `key: value` was expected; check "
       "the indentation"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "expected `,` or `}` in the mapping"},
      {YAML::ErrorMsg::END_OF_SEQ,
       "expected another `- item` of the list or its end; check the "
       "indentation"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "expected `,` or `]` in the list"},
      {YAML::ErrorMsg::FLOW_END, "a closing bracket without its opening one"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a list item (`-`) is not allowed here"},
      {YAML::ErrorMsg::MAP_KEY, "a key is not allowed here; check the indentation"},
      {YAML::ErrorMsg::MAP_VALUE,
       "a second `:` in the line; a text that contains `: ` needs quotes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR,
       "an alias (`*name`) whose anchor (`&name`) is not defined "
       "before it"},
      {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation, expected spaces"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "the file ends inside a quoted text"},
      {YAML::ErrorMsg::DOC_IN_SCALAR, "`---` or `...` inside a quoted text"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN,
       "a character that cannot begin a value; texts that begin "
       "with @ or ` need quotes"},
      {YAML::ErrorMsg::ALIAS_NOT_FOUND,
       "a `*` without the name of an anchor; texts that begin with "
       "* need quotes"},
      {YAML::ErrorMsg::ANCHOR_NOT_FOUND,
       "a `&` without a name; texts that begin with & need quotes"},
      {YAML::ErrorMsg::MULTIPLE_ANCHORS, "two anchors for one value"},
      {YAML::ErrorMsg::INVALID_ESCAPE, "an unknown escape in a quoted text"},
  };
  for (const auto& [theirs, ours] : kWords)
    if (complaint.rfind(theirs, 0) == 0) return ours;
  return "not valid YAML: " + complaint;
}

/// Whether the quoted text that begins at `start`, maybe with an anchor before it, ends: yaml-cpp
/// lets one go on to the end of the file where a line ends last.
bool is_closed(std::string_view text, std::size_t start) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto skip_to = [&](std::string_view stop) { start = text.find_first_of(stop, start); };
  if (start < text.size() && text[start] == '&') skip_to(kBlank);
  while (start < text.size() && kBlank.find(text[start]) != std::string_view::npos) {
    start = text.find_first_not_of(kBlank, start);
    if (start < text.size() && text[start] == '#') skip_to("\n");
  }
  if (start >= text.size() || (text[start] != '"' && text[start] != '\'')) return true;
  const char quote = text[start];
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    const bool escapes = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
    if (escapes)
      ++i;
    else if (text[i] == quote)
      return true;
  }
  return false;
}

}  // namespace

/// Builds the tree from yaml-cpp's events.
class DocumentBuilder : public YAML::EventHandler {
 public:
  DocumentBuilder(std::string_view text, WatchedText& source, std::string origin,
                  const DocumentLimits& limits)
      : text_(text),
        source_(source),
        origin_(std::make_shared<const std::string>(std::move(origin))),
        limits_(limits) {
    root_.origin_ = origin_;
    root_.line_ = root_.column_ = 1;
  }

  /// The tree, once all events are in. Throws if there were errors.
  Node take() {
    diagnostics_.throw_if_errors();
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      refuse(place(mark), "a second document or text after the end of the first, expected one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    source_.reached(mark);
    if (!frames_.empty()) report_bare_key(frames_.back(), mark);
    Node nothing = make(mark, Node::Kind::null);
    // Where nothing follows a key, yaml-cpp is at what comes next.
    if (!frames_.empty() && frames_.back().has_key && frames_.back().key.line_ < nothing.line_)
      move_to(nothing, frames_.back().key.line_, frames_.back().key.column_);
    add(std::move(nothing), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    source_.reached(mark);
    check_tag(mark, tag);
    Node node = make(mark, Node::Kind::scalar);
    node.quoted_ = tag == "!";
    if (node.quoted_ && !is_closed(text_, static_cast<std::size_t>(mark.pos)))
      refuse(place(mark), in_our_words(YAML::ErrorMsg::EOF_IN_SCALAR));
    node.scalar_ = value;
    if (expects_key()) frames_.back().key_position = mark.pos;
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    source_.reached(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse(place(mark), "an alias that refers to a value which contains it");
    const Anchored& target = found->second;
    check_depth(mark, frames_.size() + target.height);
    count_nodes(mark, target.nodes - 1, target.bytes);
    Node copy = target.node;
    move_to(copy, mark.line + 1, mark.column + 1);
    if (!frames_.empty()) {
      Frame& frame = frames_.back();
      frame.height = std::max(frame.height, target.height);
    }
    add(std::move(copy), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    report_repeated_keys(frames_.back().node);
    close();
  }

  /// Gives a whole tree one position.
  static void move_to(Node& node, int line, int column) {
    node.line_ = line;
    node.column_ = column;
    for (Node& item : node.items_) move_to(item, line, column);
    for (Node::Entry& entry : node.entries_) {
      move_to(entry.key, line, column);
      move_to(entry.value, line, column);
    }
  }

 private:
  /// A list or mapping whose end has not come yet.
  struct Frame {
    Node node;
    Node key;  ///< of a mapping: read, its value not yet
    bool has_key = false;
    int key_position = 0;
    YAML::anchor_t anchor = 0;
    std::size_t height = 0;  ///< levels below it so far
    std::size_t nodes_before = 0;
    std::size_t bytes_before = 0;
  };
  struct Anchored {
    Node node;
    std::size_t height = 0;
    std::size_t nodes = 1;
    std::size_t bytes = 0;
  };

  [[nodiscard]] Location place(const YAML::Mark& mark) const {
    return {*origin_, mark.line + 1, mark.column + 1};
  }

  [[nodiscard]] Node make(const YAML::Mark& mark, Node::Kind kind) const {
    Node node;
    node.kind_ = kind;
    node.line_ = mark.line + 1;
    node.column_ = mark.column + 1;
    node.origin_ = origin_;
    return node;
  }

  /// yaml-cpp gives untagged nodes "?" or, where quoted, "!"; a written "!" looks the same.
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    const auto position = static_cast<std::size_t>(mark.pos);
    const bool written = position < text_.size() && text_[position] == '!';
    if (written || (!tag.empty() && tag != "?" && tag != "!"))
      refuse(place(mark), "a tag (`" + (tag == "?" ? "!" : tag.substr(0, 60)) +
                              "`), expected a value without one");
  }

  void check_depth(const YAML::Mark& mark, std::size_t depth) const {
    if (depth > limits_.depth)
      refuse(place(mark), "nested deeper than " + std::to_string(limits_.depth) + " levels");
  }

  void count_nodes(const YAML::Mark& mark, std::size_t nodes, std::size_t bytes) {
    nodes_ += nodes;
    bytes_ += bytes;
    if (nodes_ > limits_.nodes)
      refuse(place(mark), "more than " + std::to_string(limits_.nodes) +
                              " values (aliases count with all that they stand for)");
    if (bytes_ > 2 * limits_.bytes)
      refuse(place(mark),
             "aliases stand for more than " + std::to_string(2 * limits_.bytes) + " bytes of text");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    source_.reached(mark);
    check_tag(mark, tag);
    check_depth(mark, frames_.size() + 1);
    if (expects_key())
      refuse(place(mark), "a list or mapping as a key, or a bracket that is not closed");
    frames_.push_back({make(mark, kind), {}, false, 0, anchor, 0, nodes_, bytes_});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    frame.node.items_.shrink_to_fit();
    frame.node.entries_.shrink_to_fit();
    if (!frames_.empty()) frames_.back().height = std::max(frames_.back().height, frame.height + 1);
    if (frame.anchor != 0)
      keep(frame.anchor, {frame.node, frame.height + 1, nodes_ - frame.nodes_before + 1,
                          bytes_ - frame.bytes_before});
    add(std::move(frame.node), 0);
  }

  [[nodiscard]] bool expects_key() const {
    return !frames_.empty() && frames_.back().node.is_mapping() && !frames_.back().has_key;
  }

  /// Anchored values are held twice, and count twice.
  void keep(YAML::anchor_t anchor, Anchored value) {
    const YAML::Mark mark = mark_of(value.node);
    count_nodes(mark, value.nodes, value.bytes);
    anchors_.insert_or_assign(anchor, std::move(value));
  }

  [[nodiscard]] static YAML::Mark mark_of(const Node& node) {
    YAML::Mark mark;
    mark.line = node.line_ - 1;
    mark.column = node.column_ - 1;
    return mark;
  }

  /// Hands a finished value to the list or mapping around it.
  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) keep(anchor, {node, 0, 1, node.scalar_.size()});
    if (expects_key()) {
      if (!node.is_scalar()) refuse(node.where(), "found " + node.describe() + ", expected a key");
      bytes_ += node.scalar_.size();
      frames_.back().key = std::move(node);
      frames_.back().has_key = true;
      return;
    }
    count_nodes(mark_of(node), 1, node.scalar_.size());
    if (frames_.empty()) {
      root_ = std::move(node);
    } else if (Frame& frame = frames_.back(); frame.node.is_sequence()) {
      frame.node.items_.push_back(std::move(node));
    } else {
      frame.node.entries_.push_back({std::move(frame.key), std::move(node)});
      frame.has_key = false;
    }
  }

  /// yaml-cpp takes a lone text between the entries of a block mapping for a key without a value,
  /// and gives that value the place of the key.
  void report_bare_key(const Frame& frame, const YAML::Mark& value) {
    if (frame.has_key && frame.key_position == value.pos)
      diagnostics_.error(frame.key.where(),
                         frame.key.describe() + " has no `:`, expected `key: value`");
  }

  /// O(n log n) of the number of keys.
  void report_repeated_keys(const Node& mapping) {
    const std::vector<Node::Entry>& entries = mapping.entries_;
    std::vector<std::size_t> order(entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t i) -> const std::string& { return entries[i].key.scalar_; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (key(order[i]) == key(order[i - 1]) && !diagnostics_.is_full())
        diagnostics_.error(entries[order[i]].key.where(),
                           "repeated key " + entries[order[i]].key.describe() +
                               ", first given in line " +
                               std::to_string(entries[order[i - 1]].key.line_));
  }

  std::string_view text_;
  WatchedText& source_;
  std::shared_ptr<const std::string> origin_;
  DocumentLimits limits_;
  Diagnostics diagnostics_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  Node root_;
  int documents_ = 0;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
};

namespace {

/// yaml-cpp takes some 0.3 us for a line that says nothing, so that a file of 32 MiB of them would
/// take 10 s; no file that somebody means has so many.
void refuse_empty_lines(std::string_view text, const std::string& origin) {
  constexpr std::size_t kMost = 1'000'000;
  std::size_t empty = 0;
  int line = 1;
  for (std::size_t start = 0; start < text.size(); ++line) {
    const std::size_t first = text.find_first_not_of(" \t\r", start);
    if (first == std::string_view::npos || text[first] == '\n' || text[first] == '#') ++empty;
    if (empty > kMost)
      refuse({origin, line, 1},
             "more than " + std::to_string(kMost) + " blank lines and lines of comment");
    start = std::min(text.find('\n', std::min(first, text.size())), text.size() - 1) + 1;
  }
}

/// The line (counted from 0) without its end.
std::string_view line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int i = 0; i < line && start < text.size(); ++i)
    start = std::min(text.find('\n', start), text.size() - 1) + 1;
  const std::string_view rest = text.substr(start);
  return rest.substr(0, rest.find('\n'));
}

/// How far `line` is indented, with spaces or tabs.
std::size_t indentation_of(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

/// What stands before the `:` is the first key of its line: then it is not a second `:` that is
/// wrong but the indentation, below a `key: value` that is complete.
bool is_first_colon(std::string_view line, std::size_t column) {
  const std::string_view before = line.substr(0, column);
  return before.find(": ") == std::string_view::npos &&
         before.find_first_of("\"'{[") == std::string_view::npos;
}

/// yaml-cpp complains of what follows the indentation where that is to blame.
[[noreturn]] void refuse_in_our_words(const YAML::Exception& e, std::string_view text,
                                      const std::string& origin) {
  if (e.mark.is_null()) refuse({origin, 1, 1}, in_our_words(e.msg));
  const std::string_view line = line_of(text, e.mark.line);
  const std::size_t indentation = indentation_of(line);
  const auto column = static_cast<std::size_t>(e.mark.column);
  const Location where{origin, e.mark.line + 1, e.mark.column + 1};
  if (line.substr(0, indentation).find('\t') != std::string_view::npos)
    refuse(where, in_our_words(YAML::ErrorMsg::TAB_IN_INDENTATION));
  if (e.msg == YAML::ErrorMsg::MAP_VALUE && is_first_colon(line, column))
    refuse({origin, where.line, static_cast<int>(indentation) + 1},
           "this line is indented deeper than the `key: value` above it, which is complete; "
           "expected the same indentation");
  refuse(where, in_our_words(e.msg));
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries_)
    if (entry.key.scalar_ == key) return &entry.value;
  return nullptr;
}

Location Node::where() const {
  return {origin_ ? *origin_ : std::string(), line_, column_};
}

std::string Node::describe() const {
  switch (kind_) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::mapping:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  return '`' + excerpt(scalar_) + '`';
}

namespace {

/// The first node of the tree that is not from `origin`.
const Node* first_from_elsewhere(const Node& node, const std::string& origin) {
  if (node.where().origin != origin) return &node;
  for (const Node& item : node.items())
    if (const Node* found = first_from_elsewhere(item, origin)) return found;
  for (const Node::Entry& entry : node.entries())
    if (const Node* found = first_from_elsewhere(entry.value, origin)) return found;
  return nullptr;
}

}  // namespace

Location place_of(const Node& mapping, std::span<const std::string> keys) {
  const Location whole = mapping.where();
  for (const std::string& key : keys) {
    const Node* value = mapping.find(key);
    const Node* set = value == nullptr ? nullptr : first_from_elsewhere(*value, whole.origin);
    if (set != nullptr) return set->where();
  }
  return whole;
}

void Node::set(std::string_view path, Node value, Diagnostics& diagnostics) {
  Node* target = this;
  std::string_view rest = path;
  while (true) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    Node* next = target->child_for_set(rest.substr(0, dot), value, path, diagnostics);
    if (next == nullptr) return;
    target = next;
    if (dot == rest.size()) break;
    rest.remove_prefix(dot + 1);
  }
  *target = std::move(value);
}

Node* Node::child_for_set(std::string_view step, const Node& value, std::string_view path,
                          Diagnostics& diagnostics) {
  const auto fail = [&](const std::string& reason) -> Node* {
    diagnostics.error(value.where(), "cannot set `" + excerpt(path) + "`: " + reason);
    return nullptr;
  };
  const std::string name = '`' + excerpt(step) + '`';
  if (step.empty()) return fail("the path has an empty part");
  if (is_sequence()) {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
    if (error != std::errc{} || end != step.data() + step.size())
      return fail(name + " is not the index of a list item");
    if (index >= items_.size())
      return fail("the list has " + std::to_string(items_.size()) + " items, counted from 0; " +
                  name + " is not one of them");
    return &items_[index];
  }
  if (is_scalar()) return fail("there is nothing below " + describe() + " that " + name + " names");
  for (Entry& entry : entries_)
    if (entry.key.scalar_ == step) return &entry.value;
  kind_ = Kind::mapping;
  Node key;
  key.kind_ = Kind::scalar;
  key.scalar_ = step;
  key.line_ = value.line_;
  key.column_ = value.column_;
  key.origin_ = value.origin_;
  Node empty = key;
  empty.kind_ = Kind::null;
  empty.scalar_.clear();
  entries_.push_back({std::move(key), std::move(empty)});
  return &entries_.back().value;
}

Node parse_document(std::string_view text, std::string origin, const DocumentLimits& limits) {
  if (text.size() > limits.bytes)
    refuse({origin, 0, 0}, "larger than " + std::to_string(limits.bytes) + " bytes");
  text = scan_document(text, origin);
  refuse_empty_lines(text, origin);
  WatchedText source(text, origin);
  std::istream stream(&source);
  DocumentBuilder builder(text, source, origin, limits);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    refuse_in_our_words(e, text, origin);
  }
  return builder.take();
}

Node read_document(const std::filesystem::path& path, const DocumentLimits& limits) {
  const Location where{path.string(), 0, 0};
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(where, "there is no such file");
  if (std::filesystem::is_directory(status)) refuse(where, "is a directory, expected a file");
  if (!std::filesystem::is_regular_file(status)) refuse(where, "is not a regular file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) refuse(where, "cannot be read: " + error.message());
  if (size > limits.bytes)
    refuse(where, "has " + std::to_string(size) + " bytes; files of more than " +
                      std::to_string(limits.bytes) + " bytes are not read");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(where, std::string("cannot be opened: ") + std::strerror(errno));
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  if (file.bad() || file.gcount() != static_cast<std::streamsize>(size))
    refuse(where, "cannot be read to its end");
  return parse_document(text, path.string(), limits);
}

Node parse_value(std::string_view text, std::string origin) {
  constexpr DocumentLimits kValueLimits{.bytes = 64 << 10};
  try {
    Node value = parse_document(text, std::move(origin), kValueLimits);
    DocumentBuilder::move_to(value, 0, 0);
    return value;
  } catch (const InputError& e) {
    std::vector<Diagnostic> diagnostics(e.diagnostics().begin(), e.diagnostics().end());
    for (Diagnostic& d : diagnostics) d.where.line = d.where.column = 0;
    throw InputError(std::move(diagnostics));
  }
}

}  // namespace plimsoll
