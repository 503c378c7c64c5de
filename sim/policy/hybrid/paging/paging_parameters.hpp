/// What planners of energy that recompute and page share: parameters, and where values are paged to.
#pragma once

#include "policy/hybrid/paging/blocking_plan.hpp"

#include <optional>
#include <string>

namespace plimsoll {

struct PagingParameters : BudgetedOffloadParameters {
  bool paging = true;
  bool recompute = true;
};

/// A Record that has `on`, `to`, `budget`, `paging` and `recompute` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> paging_record(const std::string& name) {
  Record<Parameters> record = offload_record<Parameters>(name);
  add_budget(record);
  bool Parameters::*paging = &Parameters::paging;
  bool Parameters::*recompute = &Parameters::recompute;
  record
      .optional("paging", paging, boolean(),
                "whether values may leave for storage and come back; default true")
      .optional("recompute", recompute, boolean(), "whether operators may run again; default true");
  return record;
}

/// The place of a plan. Without `paging`, or where there is no storage and none is asked for, only
/// recomputation is left. Throws InputError, also where an energy is not known.
[[nodiscard]] PagingPlace paging_place(const Problem& problem, const PagingParameters& parameters,
                                       const OperatorGraph& graph);

}  // namespace plimsoll
