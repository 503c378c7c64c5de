/// The integer program of POET (Patil et al. 2022, "POET: Training Neural Networks on Tiny Devices with
/// Integrated Rematerialization and Paging", ICML, arXiv:2207.07697), as its repository has it.
///
/// Stage t computes node t. With R(t,i) that i is computed in it, S(t,i) and D(t,i) that the output of
/// i is in memory, on storage, as it begins, I(t,i) and O(t,i) that it is copied in, out, in it:
///
///   minimise the sum of R(t,i) e_i + I(t,i) in_i + O(t,i) out_i subject to
///   R(t,k) <= R(t,i) + S(t,i)                     for each i that k reads
///   S(t+1,i) <= S(t,i) + R(t,i) + I(t,i),  D(t+1,i) <= D(t,i) + O(t,i)
///   I(t,i) <= D(t,i),  O(t,i) <= S(t,i)
///   the sum of R(t,i) time_i <= the limit
///   U(t,0) = R(t,0) m_0 + sum of S(t,i) m_i
///   U(t,k+1) = U(t,k) + R(t,k+1) m_(k+1) - sum of F(t,i,k) m_i,  0 <= U <= room
///
/// F(t,i,k): input i of k is free behind k, exactly where k runs and i is neither used later in the
/// stage nor kept for the next. The paper has one inequality with a large factor for the one half of
/// that; here is one for each reason, which says the same of whole numbers. So a copy that comes in
/// takes room from the next stage on, and an output that leaves has to have been kept for a stage.
#pragma once

#include "policy/hybrid/paging/blocking_plan.hpp"
#include "policy/solver/whole_program.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// Of a graph whose operators make one value at most, without workspaces, none of which stays. Energies
/// in pJ.
struct PublishedTask {
  const OperatorGraph& graph;
  std::int64_t room = 0;                  ///< bytes
  std::vector<std::int64_t> runs;         ///< by node
  std::vector<std::int64_t> outs, backs;  ///< by value
  std::optional<Time> most_compute;       ///< of all runs together
  bool paging = true;
  bool recompute = true;
  /// The edges that read this value are listed twice, and its bytes freed twice; or kNone.
  std::uint32_t counted_twice = OperatorGraph::kNone;
};

class PublishedProgram {
 public:
  /// O(nodes (nodes + reads)) columns and rows.
  explicit PublishedProgram(const PublishedTask& task);

  [[nodiscard]] const WholeProgram& program() const { return program_; }

  /// The steps that a solution stands for: in each stage its copies out, its runs, and last its copies
  /// back. What a solution does for nothing is left out: to run or fetch what is there.
  [[nodiscard]] std::vector<PagingStep> steps_of(const std::vector<double>& columns) const;

 private:
  static constexpr int kNever = -1;
  using ByStage = std::vector<std::vector<int>>;  ///< column, or kNever

  void add_columns();
  void add_reads(std::size_t stage);
  void add_flow(std::size_t stage);
  void add_memory(std::size_t stage);
  void add_frees(std::size_t stage, std::uint32_t value, std::size_t reader,
                 std::vector<std::pair<int, std::int64_t>>& level);
  void add_time();
  void at_most(std::vector<std::pair<int, std::int64_t>> terms, std::int64_t most);
  [[nodiscard]] std::int64_t bytes(std::uint32_t value) const;

  const PublishedTask task_;
  const std::size_t nodes_;
  WholeProgram program_;
  ByStage runs_;                      ///< by stage and node
  ByStage there_, saved_, in_, out_;  ///< by stage and value
};

}  // namespace plimsoll
