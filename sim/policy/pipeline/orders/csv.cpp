#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/schedule_csv.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct CsvParameters : PipelineParameters {
  Located<std::string> file;
};

Record<CsvParameters> csv_record() {
  Record<CsvParameters> record("policy pipeline/csv", "Parameters of pipeline/csv.");
  std::optional<std::vector<Located<std::string>>> CsvParameters::*devices =
      &CsvParameters::devices;
  record
      .required("file", &CsvParameters::file, located(text()),
                "the schedule, of one replica; relative to the file that names it")
      .optional("devices", devices, list_of(located(plimsoll::name()), 1, 65'536),
                "processors, one a row; default: all of the platform");
  add_recompute(record);
  add_offload_ahead(record);
  add_replica_keys(record);
  record.check({"data_parallel", "replicas"},
               [](CsvParameters& parameters, const Node&, Diagnostics& diagnostics) {
                 check_replicas(parameters, diagnostics);
               });
  return with_overlap(std::move(record));
}

CsvSchedule read_file(const std::string& file, const Location& where) {
  return read_schedule_csv(std::filesystem::path(where.origin).parent_path() / file);
}

Planned plan_csv(const Problem& problem, const CsvParameters& parameters) {
  CsvSchedule csv = read_file(parameters.file.value, parameters.file.where);
  const std::size_t rows = csv.schedule.orders.size();
  const std::size_t devices = pipeline_devices(problem, parameters).size();
  if (rows != devices)
    refuse(parameters.file.where,
           fmt::format("the schedule has {} rows for {} devices{}; expected one a device", rows,
                       devices, parameters.equal_replicas() == 1 ? "" : " of a replica"));
  PipelineParameters pipeline = parameters;
  pipeline.microbatches = csv.microbatches;
  pipeline.virtual_stages = static_cast<std::int64_t>(csv.schedule.placement.size() / rows);
  return plan_pipeline(
      problem, pipeline, [&](std::uint32_t, std::uint32_t, std::uint32_t) { return csv.schedule; },
      [&](std::uint32_t, std::uint32_t) { return csv.schedule.placement; });
}

}  // namespace

PolicyInfo pipeline_csv_policy() {
  PolicyInfo info = make_policy<CsvParameters>(
      {.name = "pipeline/csv",
       .summary = "A schedule of your own, in PyTorch's CSV format.",
       .paper = "PyTorch, torch/distributed/pipelining/schedules.py (forms compute_only and "
                "compute_comms)",
       .assumes =
           "one row a device, every stage on one of them; for backwards in halves, a chain whose "
           "stages give both, or a network; an overlapped pair lasts `overlap` of the sum of its "
           "parts, at least the longer of them; every replica runs the whole file",
       .guarantees =
           "none: runs what the file says, in its order of sends; each receive blocks its rank "
           "until the value arrives; a schedule that hangs is rejected with the cycle",
       .complexity = "O(cells x operators of a stage)"},
      csv_record(), plan_csv);
  // How the workload is built depends on the file.
  info.bind = [bind = info.bind](const Node& node,
                                 Diagnostics& diagnostics) -> std::optional<BoundPolicy> {
    auto bound = bind(node, diagnostics);
    if (!bound) return std::nullopt;
    const Node& file = *node.find("file");
    try {
      const CsvSchedule csv = read_file(file.scalar(), file.where());
      bound->microbatches *= csv.microbatches;  // of each of the replicas
      bound->microbatches_of_copy = csv.microbatches;
      bound->splits_backward = csv.splits_backward;
    } catch (const InputError& error) {
      for (const Diagnostic& it : error.diagnostics())
        diagnostics.error(it.where, it.message, it.hint);
      return std::nullopt;
    }
    return bound;
  };
  return info;
}

}  // namespace plimsoll
