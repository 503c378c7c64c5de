#include "policy/pipeline/partition/layout.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostSymbols = 1'000'000;
constexpr std::size_t kMostDepth = 16;
constexpr std::string_view kSymbols = "EtmL|";

/// Writes repeats out.
class LayoutReader {
 public:
  explicit LayoutReader(const Located<std::string>& layout)
      : text_(layout.value), where_(layout.where) {}

  std::string run() {
    std::string all = sequence(0);
    if (at_ < text_.size()) refuse("closes no `(`");
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const std::string found =
        at_ < text_.size() ? fmt::format("`{}`", text_[at_]) : std::string("the end");
    plimsoll::refuse(where_,
                     fmt::format("{} at character {} of the layout {}", found, at_ + 1, what));
  }

  std::string sequence(std::size_t depth) {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == ',' || c == ' ') {
        ++at_;
        continue;
      }
      const std::string part = c == '(' ? group(depth) : symbol();
      const std::size_t times = repeats();
      if (all.size() + part.size() * times > kMostSymbols)
        refuse(fmt::format("makes it longer than {} symbols", kMostSymbols));
      for (std::size_t i = 0; i < times; ++i) all += part;
    }
    return all;
  }

  std::string group(std::size_t depth) {
    if (depth == kMostDepth) refuse(fmt::format("is nested deeper than {}", kMostDepth));
    ++at_;
    std::string inner = sequence(depth + 1);
    if (at_ == text_.size()) refuse("comes before a `)`");
    ++at_;
    return inner;
  }

  std::string symbol() {
    if (text_[at_] == '*') refuse("has nothing before it to repeat");
    if (kSymbols.find(text_[at_]) == std::string_view::npos)
      refuse("is no symbol; expected E, t, m, L, | or (");
    return std::string(1, text_[at_++]);
  }

  std::size_t repeats() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    ++at_;
    std::size_t number = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      number = std::min(kMostSymbols + 1, 10 * number + static_cast<std::size_t>(text_[at_] - '0'));
    if (at_ > begin && number > 0) return number;
    at_ = begin;
    refuse("follows a `*`; expected a number from 1");
  }

  const std::string& text_;
  const Location& where_;
  std::size_t at_ = 0;
};

std::string_view block_of(const Workload& workload, const ChainStage& stage) {
  const std::string_view name = workload.operators[stage.forward_begin].name;
  const std::size_t slash = name.find('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

/// Where chain stages of the symbols begin, E and layers, and L after them.
std::vector<std::size_t> begins_of(const Problem& problem, const std::string& symbols,
                                   const Location& where) {
  const std::size_t stages = problem.chain.stages.size();
  const auto layers = static_cast<std::size_t>(
      std::ranges::count_if(symbols, [](char c) { return c == 't' || c == 'm'; }));
  std::vector<std::size_t> begins;
  if (problem.workload.is_chain) {
    const bool loss_is_left_over = symbols.back() == 'L' && symbols.size() == stages + 1;
    if (symbols.size() != stages && !loss_is_left_over)
      plimsoll::refuse(where, fmt::format("the layout has {} symbols; `{}` has {} stages",
                                          symbols.size(), problem.workload.name, stages));
    for (std::size_t s = 0; s < symbols.size(); ++s) begins.push_back(s);
    return begins;
  }
  const LayoutUnits units = layout_units(problem.workload, problem.chain);
  if (layers != units.layers.size())
    plimsoll::refuse(where, fmt::format("the layout has {} layers (t and m); `{}` has {} blocks",
                                        layers, problem.workload.name, units.layers.size()));
  std::size_t next = 0;
  for (const char symbol : symbols)
    begins.push_back(symbol == 'E' ? 0 : symbol == 'L' ? units.after : units.layers[next++]);
  begins.front() = 0;
  return begins;
}

/// Megatron asks for both of a model; an abstract chain has neither an embedding nor a head.
void require_ends(const std::string& symbols, const std::string& network, const Location& where) {
  const auto require = [&](char symbol, const char* what, const char* end) {
    if (symbols.find(symbol) == std::string::npos)
      plimsoll::refuse(where,
                       fmt::format("the layout has no `{}`, the {} of `{}`; expected it once "
                                   "at its {}, as Megatron-LM does",
                                   symbol, what, network, end));
  };
  require('E', "embedding", "beginning");
  require('L', "head and loss", "end");
}

void require_order(const std::string& symbols, const Location& where) {
  if (symbols.empty()) plimsoll::refuse(where, "the layout names no layer; expected E, t, m or L");
  if (const std::size_t m = symbols.find('m');
      m != std::string::npos && symbols.find('t', m) < symbols.size())
    plimsoll::refuse(where, "the layout has a `t` behind an `m`; expected all `t` before them");
  const auto once_at = [&](char symbol, std::size_t place, const char* end) {
    const auto count = std::ranges::count(symbols, symbol);
    if (count > 1 || (count == 1 && symbols[place] != symbol))
      plimsoll::refuse(
          where, fmt::format("the layout has `{}` elsewhere than once at its {}", symbol, end));
  };
  once_at('E', 0, "beginning");
  once_at('L', symbols.size() - 1, "end");
}

}  // namespace

std::vector<std::string> parse_layout(const Located<std::string>& layout) {
  const std::string all = LayoutReader(layout).run();
  std::vector<std::string> stages{""};
  for (const char symbol : all) {
    if (symbol == '|')
      stages.emplace_back();
    else
      stages.back() += symbol;
  }
  return stages;
}

LayoutUnits layout_units(const Workload& workload, const ChainView& chain) {
  LayoutUnits units;
  std::string_view last;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const std::string_view block = block_of(workload, chain.stages[s]);
    if (!block.empty() && block != last) units.layers.push_back(s);
    if (!block.empty()) units.after = s + 1;
    last = block;
  }
  units.before = units.layers.empty() ? 0 : units.layers.front();
  return units;
}

Partition layout_partition(const Problem& problem, const Located<std::string>& layout,
                           std::size_t slots) {
  const std::vector<std::string> stages = parse_layout(layout);
  std::string symbols;
  for (const std::string& stage : stages) symbols += stage;
  require_order(symbols, layout.where);
  if (!problem.workload.is_chain) require_ends(symbols, problem.workload.name, layout.where);
  if (stages.size() != slots)
    plimsoll::refuse(layout.where,
                     fmt::format("the layout has {} stages; expected {} (devices x virtual_stages)",
                                 stages.size(), slots));
  if (stages.front().empty() || stages.back().empty())
    plimsoll::refuse(layout.where,
                     fmt::format("the {} stage of the layout is empty; expected E or a layer, and "
                                 "empty stages only between others",
                                 stages.front().empty() ? "first" : "last"));
  const std::vector<std::size_t> begins = begins_of(problem, symbols, layout.where);
  Partition partition{{0}};
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    next += stages[slot].size();
    const std::size_t end = slot + 1 == slots      ? problem.chain.stages.size()
                            : next < begins.size() ? begins[next]
                                                   : 0;
    if (end <= partition.cuts.back() && !stages[slot].empty())
      plimsoll::refuse(layout.where,
                       fmt::format("stage {} of the layout, `{}`, holds nothing of `{}`; every "
                                   "stage needs something to run",
                                   slot, stages[slot], problem.workload.name));
    partition.cuts.push_back(end);
  }
  return partition;
}

}  // namespace plimsoll
