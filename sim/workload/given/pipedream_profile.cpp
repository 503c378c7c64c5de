#include "workload/given/pipedream_profile.hpp"

#include "base/whole_file.hpp"
#include "workload/core/topological_order.hpp"
#include "workload/given/given_operators.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace plimsoll {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{32} << 20;
constexpr std::size_t kLongestName = 200;
constexpr std::string_view kSeparator = " -- ";

struct ProfiledNode {
  Location where;
  std::string id, description;
  Time forward, backward;
  Bytes activations, parameters;
  std::vector<std::uint32_t> reads;  ///< nodes, each once
  bool is_read = false;
};

struct ProfiledEdge {
  Located<std::string> from, to;
};

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !text.empty() && text.size() <= kLongestName &&
         text.find_first_not_of(kLetters) == std::string_view::npos;
}

/// "Conv2d" of "Conv2d(3, 64, kernel_size=(3, 3))"; empty where it does not begin with a word.
std::string word_of(std::string_view description) {
  std::size_t end = 0;
  while (end < description.size() && is_name(description.substr(0, end + 1))) ++end;
  return std::string(description.substr(0, end));
}

/// Shorter numbers first, so that node2 is before node10.
bool is_before(const ProfiledNode& a, const ProfiledNode& b) {
  return a.id.size() != b.id.size() ? a.id.size() < b.id.size() : a.id < b.id;
}

/// One line, read from its begin.
class LineReader {
 public:
  LineReader(std::string_view line, const std::string& origin, int number, Diagnostics& diagnostics)
      : line_(line), origin_(origin), number_(number), diagnostics_(diagnostics) {}

  [[nodiscard]] Location place() const { return {origin_, number_, static_cast<int>(at_) + 1}; }
  [[nodiscard]] bool at_end() const { return at_ == line_.size(); }
  [[nodiscard]] std::string_view rest() const { return line_.substr(at_); }

  bool skip(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  bool expect(std::string_view text) { return skip(text) || refuse("`" + std::string(text) + "`"); }

  /// Up to `end`, which stays, or to the end of the line.
  std::string_view until(std::string_view end) {
    const std::string_view found = rest().substr(0, rest().find(end));
    at_ += found.size();
    return found;
  }

  std::optional<Located<std::string>> name() {
    const Location where = place();
    const std::string_view text = until(kSeparator);
    if (is_name(text)) return Located<std::string>{std::string(text), where};
    at_ -= text.size();
    refuse("a node's name: up to 200 letters, digits, `_`, `-` and `.`");
    return std::nullopt;
  }

  /// A number and what it counts, which the file leaves out: "22.307" as ms.
  template <class T>
  bool number(const char* unit, T& value) {
    const std::string_view text = rest().substr(0, rest().find_first_not_of("0123456789."));
    const Parsed<T> parsed = parse_quantity<T>(std::string(text) + " " + unit);
    if (!parsed.value) return refuse(std::string("a number of ") + unit);
    value = *parsed.value;
    at_ += text.size();
    return true;
  }

  bool refuse(const std::string& expected) {
    constexpr std::size_t kShown = 40;
    std::string found;
    for (const char c : rest().substr(0, kShown)) found += c >= ' ' && c <= '~' ? c : '?';
    diagnostics_.error(
        place(), (at_end() ? "the line ends" : "found `" + found + "`") + "; expected " + expected);
    return false;
  }

 private:
  std::string_view line_;
  const std::string& origin_;
  int number_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
};

bool read_activations(LineReader& line, Bytes& sum) {
  if (!line.skip("[")) return line.number("B", sum);
  do {
    Bytes each;
    if (!line.number("B", each)) return false;
    sum += each;
  } while (line.skip("; "));
  return line.expect("]");
}

std::optional<ProfiledNode> read_node(LineReader& line) {
  ProfiledNode node;
  const auto id = line.name();
  if (!id || !line.expect(kSeparator)) return std::nullopt;
  node.where = id->where;
  node.id = id->value;
  node.description = line.until(kSeparator);
  const bool good = line.expect(kSeparator) && line.expect("forward_compute_time=") &&
                    line.number("ms", node.forward) && line.expect(", backward_compute_time=") &&
                    line.number("ms", node.backward) && line.expect(", activation_size=") &&
                    read_activations(line, node.activations) && line.expect(", parameter_size=") &&
                    line.number("B", node.parameters);
  if (!good) return std::nullopt;
  Bytes stage;  // a number that is read over
  if (line.skip(" -- stage_id=") && !line.number("B", stage)) return std::nullopt;
  if (!line.at_end()) {
    line.refuse("the end of the line, or ` -- stage_id=`");
    return std::nullopt;
  }
  return node;
}

class ProfileReader {
 public:
  explicit ProfileReader(std::string origin) : origin_(std::move(origin)) {}

  GraphSpec run(std::string_view text) {
    read_lines(text);
    std::ranges::stable_sort(nodes_, is_before);
    join();
    diagnostics_.throw_if_errors();
    return graph();
  }

 private:
  void read_lines(std::string_view text) {
    for (int number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || diagnostics_.is_full()) continue;
      LineReader reader(line, origin_, number, diagnostics_);
      try {
        if (reader.skip("\t"))
          read_edge(reader);
        else if (auto node = read_node(reader))
          nodes_.push_back(std::move(*node));
      } catch (const QuantityOverflow&) {
        diagnostics_.error(reader.place(), "the sizes add up to more than can be counted");
      }
    }
  }

  void read_edge(LineReader& line) {
    auto from = line.name();
    if (!from || !line.expect(kSeparator)) return;
    auto to = line.name();
    if (!to) return;
    if (!line.at_end()) line.refuse("the end of the line");
    edges_.push_back({std::move(*from), std::move(*to)});
  }

  /// Numbers nodes, and leads edges to them.
  void join() {
    if (nodes_.empty() && !diagnostics_.has_errors())
      diagnostics_.error({origin_, 1, 1}, "no node; expected a graph.txt of PipeDream");
    // Where a line could not be read, a node that an edge does not find may be that line's.
    const bool all_are_known = !diagnostics_.has_errors();
    std::map<std::string_view, std::uint32_t> number_of;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
      if (const auto [first, fresh] = number_of.emplace(nodes_[i].id, i); !fresh)
        diagnostics_.error(nodes_[i].where, "node `" + nodes_[i].id + "` is there in line " +
                                                std::to_string(nodes_[first->second].where.line) +
                                                " already");
    std::set<Need> seen;
    for (const ProfiledEdge& edge : edges_) {
      const auto from = number_of.find(edge.from.value), to = number_of.find(edge.to.value);
      for (const auto& [end, name] : {std::pair(from, &edge.from), std::pair(to, &edge.to)})
        if (end == number_of.end() && all_are_known)
          diagnostics_.error(name->where, "there is no node `" + name->value + "`");
      if (from == number_of.end() || to == number_of.end()) continue;
      if (!seen.emplace(to->second, from->second).second) continue;
      nodes_[to->second].reads.push_back(from->second);
      nodes_[from->second].is_read = true;
    }
    const auto counts = [](const ProfiledNode& node) {
      return !is_input(node) && !is_left_out(node);
    };
    if (!nodes_.empty() && std::ranges::none_of(nodes_, counts))
      diagnostics_.error({origin_, 1, 1}, "no node but inputs");
    order(std::vector<Need>(seen.begin(), seen.end()));
  }

  void order(const std::vector<Need>& needs) {
    const TopologicalOrder sorted =
        topological_order(static_cast<std::uint32_t>(nodes_.size()), needs);
    if (!sorted.cycle.empty())
      diagnostics_.error(nodes_[sorted.cycle.front()].where,
                         "node `" + nodes_[sorted.cycle.front()].id + "` is in a cycle of " +
                             std::to_string(sorted.cycle.size()) + " nodes");
  }

  [[nodiscard]] static bool is_input(const ProfiledNode& node) {
    return node.reads.empty() && node.description.starts_with("Input");
  }

  [[nodiscard]] static bool is_left_out(const ProfiledNode& node) {
    return !node.is_read && node.description.starts_with("__getitem__");
  }

  [[nodiscard]] GraphSpec graph() const {
    GraphSpec graph;
    graph.where = {origin_, 1, 1};
    graph.recorded = "PipeDream's profiler";
    const std::filesystem::path path = origin_;
    graph.name = path.stem() == "graph" && path.has_parent_path()
                     ? path.parent_path().filename().string()
                     : path.stem().string();
    for (const ProfiledNode& node : nodes_) {
      if (is_input(node)) graph.inputs.push_back({{node.id, node.where}, node.activations});
      if (is_input(node) || is_left_out(node)) continue;
      GraphOperatorSpec op;
      op.where = node.where;
      const std::string word = word_of(node.description);
      op.name = word.empty() ? node.id : node.id + "/" + word;
      for (const std::uint32_t read : node.reads)
        op.inputs.push_back({nodes_[read].id, node.where});
      op.outputs.push_back({{node.id, node.where}, node.activations});
      op.forward = node.forward;
      op.backward = node.backward;
      op.parameters = node.parameters;
      graph.operators.push_back(std::move(op));
    }
    return graph;
  }

  std::string origin_;
  Diagnostics diagnostics_;
  std::vector<ProfiledNode> nodes_;
  std::vector<ProfiledEdge> edges_;
};

}  // namespace

bool is_pipedream_path(const std::filesystem::path& path) {
  return path.extension() == ".txt";
}

GraphSpec read_pipedream(const std::filesystem::path& path) {
  return parse_pipedream(read_whole_file(path, kMostBytes, "profiles"), path.string());
}

GraphSpec parse_pipedream(std::string_view text, const std::string& origin) {
  return ProfileReader(origin).run(text);
}

}  // namespace plimsoll
