/// The schedules of others that pipeline/search begins with.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// What the search is asked for, with the number of chunks that is tried.
struct SearchTask {
  const Problem& problem;
  const PipelineParameters& parameters;  ///< with that number as virtual_stages
  Bytes limit;                           ///< the least of the devices'; unlimited where none is
  bool splits = false;                   ///< whether backwards are in halves
};

/// Names of the policies with a flush that take so many chunks a device, in the order in which the
/// first wins where they tie.
[[nodiscard]] std::vector<std::string> flush_policies(const SearchTask& task);

/// Whether chunk j of device i is slot j p + i; otherwise slots go there and back.
[[nodiscard]] bool runs_on_a_loop(const std::string& name);

/// Of which schedules a lower bound is one of such a policy's.
enum class BoundedBy : std::uint8_t {
  one_way,   ///< of microbatches that all go the same way, within the limit
  two_ways,  ///< of such, and of others that go the other way
  no_limit,  ///< of such that keep what they like: it moves what it keeps elsewhere, or frees
             ///< some of it during a forward, with which a backward overlaps
};
/// Of any name: that of another policy, such as the search's own, is bounded as one_way.
[[nodiscard]] BoundedBy bounded_by(const std::string& name);

/// What one of them plans, under the limit if it takes one. Throws InputError where it does not
/// apply.
[[nodiscard]] Planned plan_of_flush_policy(const std::string& name, const SearchTask& task);

}  // namespace plimsoll
