#include "policy/interface/registry.hpp"
#include "policy/online/dtr_policy.hpp"
#include "policy/online/run/online_plan.hpp"

namespace plimsoll {

namespace {

struct DtrParameters : OnlineParameters {
  DtrScore score = DtrScore::dtr_eq;
  OnRelease on_release = OnRelease::evict;
  DtrCandidates candidates = DtrCandidates::all;
  std::int64_t seed = 1;
};

Planned plan_dtr(const Problem& problem, const DtrParameters& parameters) {
  const auto make = [&](const StorageGraph& graph) {
    return std::make_unique<DtrPolicy>(graph, parameters.score, parameters.candidates,
                                       static_cast<std::uint64_t>(parameters.seed), problem.work);
  };
  return plan_online(problem, parameters, {.on_release = parameters.on_release}, Bytes{}, make);
}

Format<DtrScore> dtr_score_format() {
  return one_of<DtrScore>({{"dtr", DtrScore::dtr},
                           {"dtr-eq", DtrScore::dtr_eq},
                           {"local", DtrScore::local},
                           {"msps", DtrScore::msps},
                           {"e-star", DtrScore::e_star},
                           {"lru", DtrScore::lru},
                           {"size", DtrScore::size},
                           {"random", DtrScore::random}});
}

Format<OnRelease> on_release_format() {
  return one_of<OnRelease>(
      {{"evict", OnRelease::evict}, {"ignore", OnRelease::ignore}, {"banish", OnRelease::banish}});
}

Format<DtrCandidates> candidates_format() {
  return one_of<DtrCandidates>({{"all", DtrCandidates::all}, {"sqrt", DtrCandidates::sqrt}});
}

}  // namespace

PolicyInfo online_dtr_policy() {
  auto record = single_processor_record<DtrParameters>("online/dtr");
  add_online(record);
  record
      .optional(
          "score", &DtrParameters::score, dtr_score_format(),
          "what the tensor that goes has the least of: the cost of making it and its absent "
          "neighbours again for its bytes and staleness (`dtr`; `dtr-eq`, with the costs of "
          "neighbours kept in classes; `local`, without neighbours); for its bytes alone "
          "(`msps`: with what it is made from; `e-star`: with what is made from it, too); "
          "last access (`lru`); 1 / bytes (`size`); a drawn number (`random`); default dtr-eq")
      .optional("on_release", &DtrParameters::on_release, on_release_format(),
                "what becomes of a tensor that the program no longer reads: `evict`, released at "
                "once; `ignore`, nothing; `banish`, gone for good once nothing absent depends on "
                "it; default evict")
      .optional(
          "candidates", &DtrParameters::candidates, candidates_format(),
          "whether `all` are scored, or a sample as large as the root of their number, without "
          "those of less than 1 % of the mean bytes (`sqrt`); default all")
      .optional("seed", &DtrParameters::seed, integer(0, 1'000'000'000),
                "of drawn numbers; default 1");
  return make_policy<DtrParameters>(
      {.name = "online/dtr",
       .summary = "Decides while it runs: evicts the tensor of least score when memory is full, "
                  "and makes again what is read and not there.",
       .paper = "Kirisame et al. 2021, \"Dynamic Tensor Rematerialization\", ICLR, "
                "arXiv:2006.09616",
       .assumes = "any workload of one processor, one microbatch; forwards, and operators of "
                  "compute graphs, may run again, with what they change in place. Every forward "
                  "keeps what its backward needs",
       .guarantees = kOnlineGuarantee,
       .complexity = "O(candidates) for an eviction; with the scores dtr, msps and e-star times "
                     "what is absent around each",
       .is_online = true},
      record, plan_dtr);
}

}  // namespace plimsoll
