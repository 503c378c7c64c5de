#include "workload/network/division.hpp"

#include "base/divisors.hpp"
#include "workload/network/axis_problems.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {
namespace {

/// An operator that works on the part of a rank as on the whole.
struct Carries {
  std::string_view kind;
  Part from, to;
  std::array<std::string_view, 2> divided = {};  ///< arguments, where they are not 0
  Part second;                                   ///< of a further input
};

constexpr Carries carries(std::string_view kind, Part from, Part to,
                          std::array<std::string_view, 2> divided = {}) {
  return {kind, from, to, divided, from};
}

constexpr Carries kCarries[] = {
    carries("attention_core", Part::features, Part::features, {"heads"}),
    carries("attention_scores", Part::features, Part::heads, {"heads"}),
    {"attention_context", Part::heads, Part::features, {"heads"}, Part::features},
    carries("dot_product_attention", Part::features, Part::features, {"heads", "kv_heads"}),
    carries("dot_product_attention", Part::heads, Part::heads),
    carries("split_heads", Part::features, Part::heads, {"heads", "kv_heads"}),
    carries("join_heads", Part::heads, Part::features),
    carries("transpose", Part::heads, Part::heads),
    carries("product", Part::heads, Part::heads),
    carries("causal_mask", Part::heads, Part::heads),
    carries("relative_bias", Part::heads, Part::heads),
    carries("rows", Part::features, Part::rows),
    carries("rows", Part::rows, Part::features, {"features"}),
    carries("slice", Part::features, Part::features, {"features"}),
    carries("concat", Part::features, Part::features),
    carries("gain", Part::features, Part::features, {"elements"}),
    carries("bias", Part::features, Part::features, {"elements"}),
    carries("fused_rotary", Part::features, Part::features),
    carries("rotate_half", Part::features, Part::features),
    carries("log_softmax", Part::features, Part::features),
    carries("nll_loss", Part::features, Part::features),
    carries("fused_cross_entropy_loss", Part::features, Part::features),
};

/// What works on each number alone, or on two.
constexpr std::string_view kOfNumbers[] = {
    "relu",     "relu6",  "leaky_relu", "hard_swish", "gelu",         "silu",  "mish",
    "softplus", "elu",    "exp",        "sqrt",       "hard_sigmoid", "rsqrt", "reciprocal",
    "log",      "pow",    "abs",        "sin",        "cos",          "neg",   "sigmoid",
    "tanh",     "swiglu", "geglu",      "multiply",   "sub",          "div",   "shift",
    "scale",    "copy",   "add",        "dropout",    "sum_loss"};
/// What works on each row alone: on parts of rows and heads, not on parts of features.
constexpr std::string_view kOfRows[] = {
    "layer_norm", "fused_rms_norm", "softmax", "softmax_dropout",
    "row_mean",   "row_sum",        "gain",    "bias"};
/// What else works on each position alone.
constexpr std::string_view kOfPositions[] = {"linear",
                                             "top_k",
                                             "rows",
                                             "slice",
                                             "fused_rotary",
                                             "rotate_half",
                                             "position_embedding",
                                             "log_softmax",
                                             "nll_loss",
                                             "fused_cross_entropy_loss",
                                             "segment_embedding",
                                             "mse_loss",
                                             "bce_with_logits_loss",
                                             "concat"};

bool is_among(std::string_view kind, std::span<const std::string_view> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_dense(std::string_view kind) {
  return kind == "linear" || kind == "expert_linear";
}

/// What the call makes of inputs of which a rank has the part `from`; nullopt where it cannot.
std::optional<Carries> carry(const NetworkCall& call, Part from) {
  const std::string_view kind = call.rule->kind;
  // A size of 0: all features are those of one head.
  if (kind.ends_with("rotary") || kind == "rotate_half")
    if (from == Part::features && argument_of(call, "size") == 0) return std::nullopt;
  if (is_among(kind, kOfNumbers)) return carries(kind, from, from);
  if ((from == Part::rows || from == Part::heads || from == Part::positions) &&
      is_among(kind, kOfRows))
    return carries(kind, from, from);
  if (from == Part::positions)
    return is_among(kind, kOfPositions) ? std::optional(carries(kind, from, from)) : std::nullopt;
  for (const Carries& it : kCarries)
    if (it.kind == kind && it.from == from) return it;
  return std::nullopt;
}

bool is_divided(Part part) {
  return part == Part::features || part == Part::heads || part == Part::rows;
}

constexpr std::size_t kMostNamed = 4;  ///< of what a number of ranks does not divide

class Division {
 public:
  Division(const Network& network, std::span<const NetworkCall> calls, const TensorAxis& axis)
      : network_(network),
        calls_(calls),
        axis_(axis),
        base_(axis.sequence ? Part::positions : Part::whole),
        readers_(network.values.size()),
        maker_(network.values.size(), kNoValue),
        divisible_(network.values.size(), Part::whole),
        parts_(network.values.size(), Part::whole),
        problems_(axis.where, AxisProblems::kMost) {}

  std::vector<DividedCall> run() {
    find_divisible();
    for (std::uint32_t v = 0; v < network_.values.size(); ++v)
      if (is_input(v) && !network_.values[v].indices) parts_[v] = based(v, "the input");
    for (const NetworkCall& call : calls_) {
      DividedCall& it = divided_.emplace_back();
      it.reads_copied.assign(call.inputs.size(), false);
      divide(call, it);
      if (call.output != kNoValue) parts_[call.output] = it.output;
    }
    refuse_undivided();
    if (problems_.is_empty() && !is_divided_)
      problems_.add(
          "`tensor` divides dense layers whose outputs meet in another dense layer or in the "
          "loss; the network has none",
          "leave `tensor` out");
    problems_.throw_if_any();
    return std::move(divided_);
  }

 private:
  /// What no call makes may be a cast, too.
  [[nodiscard]] bool is_input(std::uint32_t v) const {
    return maker_[v] == kNoValue && network_.storages[network_.values[v].storage].is_input;
  }

  // ---- which values may be in parts ----

  /// The part in which each value could be, if all that makes and reads it agrees.
  void find_divisible() {
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const NetworkCall& call = calls_[c];
      for (const std::uint32_t input : call.inputs) readers_[input].push_back(c);
      if (call.output == kNoValue) continue;
      maker_[call.output] = c;
      divisible_[call.output] = could_be(call);
    }
    for (std::uint32_t v = 0; v < divisible_.size(); ++v)
      if (divisible_[v] == Part::whole || readers_[v].empty()) refuse(v);
    for (std::uint32_t c = 0; c < calls_.size(); ++c)
      if (!agrees(calls_[c])) refuse_all_of(calls_[c]);
    // What reads parts is divided by rows, and what meets its sums, as an adapter's do, is whole, too.
    for (const NetworkCall& call : calls_)
      if (is_dense(call.rule->kind) && divisible_[call.inputs.front()] == Part::features &&
          is_divided(divisible_[call.output]))
        refuse(call.output);
  }

  [[nodiscard]] Part could_be(const NetworkCall& call) const {
    if (makes_parts(call)) return may_make_parts(call) ? Part::features : Part::whole;
    const auto carried = carry_of(call, divisible_);
    return carried ? carried->to : Part::whole;
  }

  [[nodiscard]] static bool makes_parts(const NetworkCall& call) {
    return is_dense(call.rule->kind) || call.rule->kind == "repeat_features";
  }

  /// The few features of an adapter's rank are on every rank.
  [[nodiscard]] static bool may_make_parts(const NetworkCall& call) {
    return makes_parts(call) && call.adapter != AdapterPart::down;
  }

  /// What the call makes of its inputs, where all are in parts that fit.
  [[nodiscard]] std::optional<Carries> carry_of(const NetworkCall& call,
                                                const std::vector<Part>& parts) const {
    const auto it = carry(call, parts[call.inputs.front()]);
    if (!it) return it;
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
      if (parts[call.inputs[i]] != it->second) return std::nullopt;
    return it;
  }

  /// Whether the call can work with its inputs, and with its output, as they could be.
  [[nodiscard]] bool agrees(const NetworkCall& call) const {
    if (makes_parts(call)) return true;
    const bool any = std::ranges::any_of(
        call.inputs, [&](std::uint32_t v) { return is_divided(divisible_[v]); });
    const bool is_out = call.output != kNoValue && is_divided(divisible_[call.output]);
    if (!any && !is_out) return true;
    const auto it = carry_of(call, divisible_);
    return it && is_divided(it->from) && (call.output == kNoValue || is_out);
  }

  void refuse_all_of(const NetworkCall& call) {
    for (const std::uint32_t input : call.inputs) refuse(input);
    if (call.output != kNoValue) refuse(call.output);
  }

  /// The value is in no parts; and so no other that its maker or its readers need in parts with it.
  void refuse(std::uint32_t value) {
    std::vector<std::uint32_t> open{value};
    while (!open.empty()) {
      const std::uint32_t v = open.back();
      open.pop_back();
      const bool was = refused_.insert(v).second;
      divisible_[v] = Part::whole;
      if (!was) continue;
      const auto spread_over = [&](std::uint32_t c) {
        const NetworkCall& call = calls_[c];
        if (makes_parts(call) || !is_known(c)) return;
        for (const std::uint32_t input : call.inputs) open.push_back(input);
        if (call.output != kNoValue) open.push_back(call.output);
      };
      if (maker_[v] != kNoValue) spread_over(maker_[v]);
      for (const std::uint32_t c : readers_[v]) spread_over(c);
    }
  }

  /// Whether the call is one that could have worked on parts.
  [[nodiscard]] bool is_known(std::uint32_t c) const {
    const std::string_view kind = calls_[c].rule->kind;
    return is_among(kind, kOfNumbers) || is_among(kind, kOfRows) ||
           std::ranges::find(kCarries, kind, &Carries::kind) != std::end(kCarries);
  }

  // ---- what becomes of each call ----

  void divide(const NetworkCall& call, DividedCall& it) {
    const std::string_view kind = call.rule->kind;
    const Part in = parts_[call.inputs.front()];
    if (is_dense(kind) && in == Part::features) return by_rows(call, it);
    if (makes_parts(call) && call.output != kNoValue && is_divided(divisible_[call.output]))
      return by_columns(call, it);
    if (kind == "embedding" && call.inputs.size() == 1) return by_entries(call, it);
    if (kind == "dispatch") return dispatch(call, it);
    if (kind == "combine_rows" && in == Part::partial) {
      it.reads_copied.back() = true;
      return sum(call, it);
    }
    if (std::ranges::all_of(call.inputs,
                            [&](std::uint32_t v) { return parts_[v] == Part::whole; })) {
      it.output = Part::whole;
      return;
    }
    carry_on(call, it);
  }

  void by_columns(const NetworkCall& call, DividedCall& it) {
    is_divided_ = true;
    it.reads_copied.front() = true;
    take_part(call, call.rule->kind == "repeat_features" ? "times" : "features", it);
    it.output = Part::features;
  }

  void by_rows(const NetworkCall& call, DividedCall& it) {
    if (call.rule->kind == "expert_linear")
      it.output = Part::partial;  // until the rows of a position are combined
    else
      sum(call, it);
  }

  void by_entries(const NetworkCall& call, DividedCall& it) {
    take_part(call, "entries", it);
    sum(call, it);
  }

  void sum(const NetworkCall& call, DividedCall& it) {
    it.sums_output = true;
    it.output = based(call.output, call.name);
  }

  /// Rows go to experts that are divided themselves.
  void dispatch(const NetworkCall& call, DividedCall& it) {
    const auto& readers = readers_[call.output];
    const bool divides = std::ranges::any_of(readers, [&](std::uint32_t c) {
      return calls_[c].rule->kind == "expert_linear" && is_divided(divisible_[calls_[c].output]);
    });
    if (!divides && base_ == Part::positions)
      problems_.add(
          fmt::format("`sequence: true` needs experts that `tensor` divides; it cannot divide "
                      "those behind `{}`",
                      call.name));
    it.reads_copied.front() = divides;
    it.output = divides ? Part::copied : Part::whole;
  }

  void carry_on(const NetworkCall& call, DividedCall& it) {
    const auto carried = carry_of(call, parts_);
    if (!carried) {
      problems_.add(
          fmt::format("`{}` of `{}` cannot work on what ranks divide{}", call.rule->kind, call.name,
                      base_ == Part::positions ? ", features or positions" : ""),
          base_ == Part::positions ? "`sequence: false` leaves positions whole" : "");
      it.output = base_;
      return;
    }
    for (const std::string_view name : carried->divided)
      if (!name.empty() && argument_of(call, name) != 0) take_part(call, name, it);
    it.output = carried->to;
    const std::string_view kind = call.rule->kind;
    it.sums_rows = carried->from == Part::features &&
                   (kind == "log_softmax" || kind == "fused_cross_entropy_loss");
    // Learned numbers that all ranks have, of which each sees a part of the rows.
    it.makes_partial_gradients = carried->from != Part::features && kind != "relative_bias";
  }

  /// The part in which what is not divided by features is.
  Part based(std::uint32_t value, const std::string& name) {
    if (base_ == Part::whole) return base_;
    const Dims& dims = network_.values[value].dims;
    if (dims.size() != 2) {
      problems_.add(
          fmt::format("`sequence: true` divides positions, and `{}` has none: a shape of {}", name,
                      to_text(dims)),
          "`sequence: false` leaves values whole");
    } else {
      divide_size(dims.front(),
                  fmt::format("{} positions that `sequence: true` shards", dims.front()));
    }
    return base_;
  }

  void take_part(const NetworkCall& call, std::string_view name, DividedCall& it) {
    it.divided.push_back(name);
    const std::int64_t whole = argument_of(call, name);
    if (name == "entries") entries_.insert(whole);
    divide_size(whole, fmt::format("{} {} of `{}` ({})", whole, name == "times" ? "heads" : name,
                                   call.rule->kind, layer_of(call)));
  }

  void divide_size(std::int64_t whole, const std::string& what) {
    sizes_.insert(whole);
    if (whole % axis_.ranks != 0 && std::ranges::count(undivided_, what) == 0)
      undivided_.push_back(what);
  }

  /// All in one, as one number has to divide them all.
  void refuse_undivided() {
    if (undivided_.empty()) return;
    const std::span<const std::string> named =
        std::span(undivided_).first(std::min(undivided_.size(), kMostNamed));
    std::string what = fmt::format("the {}", fmt::join(named, ", the "));
    if (named.size() < undivided_.size())
      what += fmt::format(", and {} more", undivided_.size() - named.size());
    problems_.add(fmt::format("`tensor: {}` does not divide {}", axis_.ranks, what),
                  words_for_all_sizes());
  }

  /// Tables may be filled up, and layers with one feature for each entry with them.
  [[nodiscard]] std::string words_for_all_sizes() const {
    std::int64_t all = 0, others = 0;
    for (const std::int64_t size : sizes_) {
      all = std::gcd(all, size);
      if (!entries_.contains(size)) others = std::gcd(others, size);
    }
    if (!entries_.empty() && others % axis_.ranks != 0 && others != all)
      return expected_divisor(others, axis_.ranks) + ", with tables filled up to a multiple of it";
    std::string words = expected_divisor(all, axis_.ranks);
    if (all != 1 && sizes_.size() > 1) words += ", which divide all that ranks divide";
    if (entries_.empty() || others % axis_.ranks != 0) return words;
    const std::int64_t next = (*entries_.rbegin() / axis_.ranks + 1) * axis_.ranks;
    return words + fmt::format("; or a table filled up to {} entries", next);
  }

  /// Of layers in blocks that repeat the last part of the name: they are told once.
  [[nodiscard]] static std::string layer_of(const NetworkCall& call) {
    return call.name.substr(call.name.rfind('/') + 1);
  }

  const Network& network_;
  const std::span<const NetworkCall> calls_;
  const TensorAxis& axis_;
  const Part base_;
  std::vector<std::vector<std::uint32_t>> readers_;  ///< by value: calls
  std::vector<std::uint32_t> maker_;                 ///< by value: a call
  std::vector<Part> divisible_;                      ///< by value: in which parts it may be
  std::set<std::uint32_t> refused_;
  std::vector<Part> parts_;  ///< by value
  std::vector<DividedCall> divided_;
  bool is_divided_ = false;
  std::set<std::int64_t> sizes_, entries_;  ///< that ranks divide; of these, those of tables
  std::vector<std::string> undivided_;
  AxisProblems problems_;
};

}  // namespace

std::int64_t argument_of(const NetworkCall& call, std::string_view name) {
  const auto found = std::ranges::find(call.arguments, name, [](const auto& a) { return a.first; });
  return found == call.arguments.end() ? 0 : found->second;
}

bool works_on_positions(std::string_view kind) {
  return is_among(kind, kOfNumbers) || is_among(kind, kOfRows) || is_among(kind, kOfPositions);
}

std::vector<DividedCall> divide(const Network& network, std::span<const NetworkCall> calls,
                                const TensorAxis& axis) {
  return Division(network, calls, axis).run();
}

}  // namespace plimsoll
