/// The integer program of staged plans (Jain et al. 2020, "Checkmate: Breaking the Memory Wall with
/// Optimal Tensor Rematerialization", MLSys, arXiv:1910.02653, section 4), in a tighter form.
///
/// In stage t, R(t,g) says that group g runs again, S(t,v) that value v is carried into the stage:
///
///   minimise the sum of time(g) R(t,g) subject to
///   R(t,g) <= S(t,v) + R(t, maker of v)       for each v that g reads; 1 <= ... for the node t
///   S(t+1,v) <= S(t,v) + R(t, maker of v) <= 1
///   U(t,k) <= room                            bytes there at the run of node k in stage t.
///
/// Where the paper has a binary for each value that is freed after each of its readers, here is one
/// for each stretch between two readers j < k of v in which v is there, N(t,v,k):
///
///   N(t,v,k) >= R(t,k), N(t,v,k) >= N(t,v, next reader), and behind the last reader S(t+1,v).
///
/// So a value is there as far as its readers run, whatever else is fractional; it follows that what
/// is kept for stage t+1 is there at the first run of node t, and that the time of values dropped
/// in gaps (gap_bound.hpp) is no more than that of the relaxation [derived]. All but U is declared
/// whole: given R it is anyway where it is least, so that only R is branched on, but cuts are found
/// for what is declared so. What
/// differs from the paper's meaning: an output without readers is let go after its maker, not at
/// the end of the stage.
///
/// The state of the generator of a random node k is carried into stage t, G(t,k), as far as k runs
/// again: G(t,k) >= R(t,k), G(t,k) >= G(t+1,k); at the first run of k there is G(k+1,k) of it.
///
/// Values that only the form `keep` leaves have, instead of R, a column for runs of their maker in
/// that form; what is a part of one of them there is read from the one or the other.
#pragma once

#include "policy/graph/staged_schedule.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// Copies to storage in the program, of values that return by groups of their own (RerunGroups::Group):
/// Z(t,v) says that v comes back as stage t begins, in the place of a run of its maker, at the time
/// of its group, and X(v) >= Z(t,v) that it has left. Then S(t,v) + R(t, maker of v) + Z(t,v) <= 1.
struct StagedCopies {
  std::vector<std::int64_t> outs = {};  ///< by value, what leaving costs once
  Bytes storage = Bytes::unlimited();   ///< for all that leaves
  /// How long runs and copies take together, where that is limited: by group, of a run again or a
  /// copy back; by value, of the copy out.
  std::optional<std::int64_t> most_time = {};
  std::vector<std::int64_t> again_times = {}, out_times = {};
};

/// A sum of columns and a constant.
struct LinearSum {
  std::vector<std::pair<int, std::int64_t>> terms = {};
  std::int64_t constant = 0;

  [[nodiscard]] bool is_constant() const { return terms.empty(); }
  [[nodiscard]] bool is(std::int64_t value) const { return is_constant() && constant == value; }
  void add(const LinearSum& other, std::int64_t times = 1);
};

class StagedProgram {
 public:
  struct Column {
    double most = 1;  ///< the least is 0
    bool is_whole = true;
    bool is_branched = false;  ///< the others are whole where these are
    std::int64_t time = 0;     ///< ps, of a rerun; or what it costs, as its group has it
  };
  /// The sum of `terms` is at least or at most so much; or equal.
  struct Row {
    std::vector<std::pair<int, std::int64_t>> terms;
    std::optional<std::int64_t> least, most;
    bool is_of_bytes = false;
    std::int64_t unit = 1;  ///< what counts as one, where it is not of bytes
  };

  /// Why a graph has no such program; nothing where it has one.
  [[nodiscard]] static std::optional<std::string> refusal(const OperatorGraph& graph,
                                                          const RerunGroups& groups);

  /// O(stages (values + reads)) columns and rows. With `only` there are no reruns but those, which
  /// ascend; without `copies` no value returns. Precondition: refusal() has none.
  StagedProgram(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room,
                const std::optional<std::vector<Rerun>>& only = {},
                const StagedCopies* copies = nullptr);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Bytes that count as one in the rows of bytes.
  [[nodiscard]] std::int64_t byte_unit() const { return byte_unit_; }

  /// Whether a step needs more than the room whatever runs again.
  [[nodiscard]] bool is_impossible() const { return is_impossible_; }

  struct RerunColumn {
    Rerun rerun;
    int column = 0;
  };
  [[nodiscard]] const std::vector<RerunColumn>& rerun_columns() const { return rerun_columns_; }
  static constexpr int kAlways = -1;
  /// What may be carried into a stage; kAlways where it has to be.
  struct CarriedColumn {
    std::uint32_t stage = 0, value = 0;
    int column = 0;
  };
  [[nodiscard]] const std::vector<CarriedColumn>& carried_columns() const {
    return carried_columns_;
  }

 private:
  friend class StagedProgramBuilder;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::vector<RerunColumn> rerun_columns_;
  std::vector<CarriedColumn> carried_columns_;
  std::int64_t byte_unit_ = 1;
  bool is_impossible_ = false;
};

}  // namespace plimsoll
