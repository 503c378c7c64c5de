/// The answer for one workload of a capacity plan, in words: what the text and the page share.
/// Internal to this floor.
#pragma once

#include "report/text/text_table.hpp"
#include "scenario/capacity/capacity.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// One row a configuration that the policy does not refuse, one text a column.
struct CapacityTable {
  static constexpr std::size_t kKeys = 3;  ///< columns that name a row: mark, platform, policy
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<const Configuration*> configurations;  ///< by row
};

class CapacityWords {
 public:
  /// Both outlive it.
  CapacityWords(const CapacityReport& report, const CapacityAnswer& answer)
      : plan_(report.plan), workload_(report.plan.workloads[answer.workload]), answer_(answer) {}

  /// "rtx-4090 with offload/greedy"; "... with pipeline/1f1b (2)" where a platform is tried with
  /// several of that name.
  [[nodiscard]] std::string name_of(const Configuration& it) const;
  [[nodiscard]] CapacityTable table() const;
  /// What the columns and marks mean.
  [[nodiscard]] std::vector<std::string> legend() const;
  /// Who is best on each axis of the front.
  [[nodiscard]] std::vector<std::string> best() const;
  /// The sentence for a workload for which best() has nothing.
  [[nodiscard]] std::string nothing_carries_it() const;
  /// What is in the way; those with the same obstacle are reported together.
  [[nodiscard]] std::vector<std::string> shortfalls() const;
  /// What would move the best configuration of each platform.
  [[nodiscard]] std::vector<std::string> insights() const;
  /// Where the workload has `send`: what of both is cheaper, and up to how many epochs.
  [[nodiscard]] std::vector<std::string> sendings() const;
  /// "each change was run, ...": what is said above these.
  [[nodiscard]] static std::string how_it_was_measured();
  /// "held back by memory", "does not fit".
  [[nodiscard]] static std::string bound_of(const Insight& insight, const Configuration& base);
  /// Else it is "no difference".
  [[nodiscard]] static bool is_noticeable(const Sensitivity& it, const Configuration& base);
  /// "+31 % throughput (batch 160)", "no difference".
  [[nodiscard]] static std::string effect_of(const Sensitivity& it, const Configuration& base);

 private:
  [[nodiscard]] std::string cheaper_way(double epochs_at_par) const;
  [[nodiscard]] bool is_any_at_risk() const;

  /// A column that only some plans need.
  struct Extra {
    Column column;
    std::function<std::string(const Configuration&)> text;  ///< of one that runs
  };

  [[nodiscard]] const std::string& platform_of(const Configuration& it) const {
    return plan_.platforms[it.candidate].name;
  }
  [[nodiscard]] std::string policy_of(const Configuration& it) const;
  /// "dgx-a100, dgx-h100 with none, remat/blocks": platforms with the same policies together.
  [[nodiscard]] std::string names_of(std::span<const Configuration* const> some) const;
  [[nodiscard]] std::vector<Extra> extras() const;
  [[nodiscard]] std::vector<std::string> common_cells(const Configuration& it) const;
  /// Of those that are feasible; nullptr where one of them has no price, or none is bought.
  [[nodiscard]] const Configuration* cheapest_with_purchase() const;
  [[nodiscard]] std::string figure(Axis axis, const Configuration& it) const;

  const CapacityPlan& plan_;
  const CapacityWorkload& workload_;
  const CapacityAnswer& answer_;
};

}  // namespace plimsoll
