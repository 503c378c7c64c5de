/// Where offloaded tensors go: the parameters and memories that all offload policies share.
#pragma once

#include "policy/budget/budget.hpp"

namespace plimsoll {

struct OffloadParameters : SingleProcessorParameters {
  std::optional<Located<std::string>> to;
};

/// Of the offload policies that have a budget.
struct BudgetedOffloadParameters : BudgetParameters {
  std::optional<Located<std::string>> to;
};

/// The processor's memory and the storage that tensors are copied to.
struct OffloadMemories {
  ProcessorId processor{};
  MemoryId home{};
  MemoryId storage{};
};

inline constexpr const char* kStorageText =
    "the memory to copy to; default: the one with the fastest way out and back";

/// A Record that has `on` and `to` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> offload_record(const std::string& name) {
  Record<Parameters> record = single_processor_record<Parameters>(name);
  std::optional<Located<std::string>> Parameters::*to = &Parameters::to;
  record.optional("to", to, located(plimsoll::name()), kStorageText);
  return record;
}

/// A Record that has `on`, `to`, `budget` and `improve` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> budgeted_offload_record(const std::string& name) {
  Record<Parameters> record = offload_record<Parameters>(name);
  add_budget(record);
  add_improve(record);
  return record;
}

/// The memory that `to` names; by default the one in which 1 MiB is out of `home` and back first,
/// ties to the first in the platform file. Throws InputError where there is none, at `where`.
[[nodiscard]] MemoryId storage_for(const Problem& problem, MemoryId home,
                                   const std::optional<Located<std::string>>& to,
                                   const Location& where);

/// Resolves `on` and the storage. Throws InputError.
[[nodiscard]] OffloadMemories offload_memories(const Problem& problem,
                                               const SingleProcessorParameters& parameters,
                                               const std::optional<Located<std::string>>& to);

/// The same for parameters that have `to`.
template <class Parameters>
[[nodiscard]] OffloadMemories offload_memories(const Problem& problem,
                                               const Parameters& parameters) {
  return offload_memories(problem, parameters, parameters.to);
}

/// How many stages, from the first, are worth moving: all but the last two, which are needed back
/// at once.
[[nodiscard]] std::size_t offloaded_stages(const Problem& problem);

}  // namespace plimsoll
