/// What ranks do together: the ranks of one group hold equal tensors, and end with more of them.
///
///   all_reduce      each ends with the sum of what all held
///   reduce_scatter  each ends with its own part of that sum
///   all_gather      each begins with its own part, and ends with all parts
///   all_to_all      each begins with a part for every one, and ends with those that are for it
///   pass_on         each ends with what the one before it had
///   pass_back       each ends with what the one after it had
///
/// Or what one rank does for itself with state that lives in another memory (Home):
///
///   fetch           makes here what it reads there
///   store           changes there what it reads here
///
/// A collective of a workload is an operator that takes no time where it is issued: it makes its
/// outputs, and what follows moves over the platform's links (plan/build/spread_plan.hpp). It
/// reduces what it changes in place (all_reduce) or reads (reduce_scatter), gathers what it makes
/// (all_gather), and hands out what it reads (all_to_all, pass_on,
/// pass_back).
#pragma once

#include <cstdint>

namespace plimsoll {

enum class CollectiveKind : std::uint8_t {
  none,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  pass_on,
  pass_back,
  fetch,
  store
};

/// Whether members hand all that they have to the next one, or to the one before.
[[nodiscard]] constexpr bool is_pass(CollectiveKind kind) {
  return kind == CollectiveKind::pass_on || kind == CollectiveKind::pass_back;
}

/// Whether it moves state between two memories of one rank.
[[nodiscard]] constexpr bool moves_state(CollectiveKind kind) {
  return kind == CollectiveKind::fetch || kind == CollectiveKind::store;
}

/// The axes of a mesh of ranks along which groups lie. Where state is in parts within groups of the
/// data axis, `data` lies within them, and `replica` across them.
enum class MeshAxis : std::uint8_t { tensor, context, expert, data, replica };

/// Over the data axis take part all that hold the same parameters: the ranks of the context and of the
/// expert axis, too, but those of the latter not with parameters of experts, of which each has its own.
/// Over the replica axis take part those that hold the same part of them.
struct Collective {
  CollectiveKind kind = CollectiveKind::none;
  MeshAxis axis = MeshAxis::data;
  bool of_experts = false;

  friend bool operator==(const Collective&, const Collective&) = default;
};

}  // namespace plimsoll
