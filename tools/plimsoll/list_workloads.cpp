#include "lists.hpp"
#include "output.hpp"
#include "report/text/text_table.hpp"
#include "scenario/document/search_path.hpp"
#include "workload/chain/chain_view.hpp"
#include "workload/workload_file.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kWorkloadKind = "workloads";
constexpr std::size_t kMostStages = 200;

std::string known_or_unknown(std::int64_t count) {
  return count > 0 ? decimal(static_cast<double>(count)) : "-";
}

std::string stages_text(const Workload& workload, const ChainView& chain, const Style& style) {
  using enum Column::Align;
  TextTable table({{"stage", right},
                   {"from"},
                   {"to"},
                   {"output", right},
                   {"saved", right},
                   {"parameters", right}});
  for (std::size_t s = 0; s < std::min(chain.stages.size(), kMostStages); ++s) {
    const ChainStage& stage = chain.stages[s];
    table.add({{fmt::format("{}", s + 1)},
               {workload.operators[stage.forward_begin].name},
               {workload.operators[stage.forward_end - 1].name},
               {to_text(stage.output_bytes)},
               {to_text(stage.saved_bytes)},
               {to_text(stage.parameter_bytes)}});
  }
  std::string text = table.text(style);
  if (chain.stages.size() > kMostStages)
    text += fmt::format("  and {} more\n", chain.stages.size() - kMostStages);
  return text;
}

std::string describe_workload(const Workload& workload, const Style& style) {
  std::string out = style(Paint::bold, workload.name) +
                    fmt::format("   {}\n\n", counted(workload.forwards, "forward operator"));
  const auto line = [&](const std::string& label, const std::string& text) {
    out +=
        style(Paint::bold, fmt::format("  {:<12}", label)) + wrapped(text, kReportWidth, 14) + '\n';
  };
  line("parameters",
       fmt::format("{} ({})",
                   workload.parameters > 0 ? thousands(workload.parameters) : "unknown number",
                   to_text(workload.parameter_bytes)));
  line("MACs", workload.macs > 0 ? thousands(workload.macs) + " for one forward"
                                 : "unknown: its times are given");
  line("saved", fmt::format("{} kept for backward at batch {}", to_text(workload.saved_bytes),
                            workload.batch));

  const ChainView chain = chain_view(workload), cut = pipeline_view(workload);
  out += fmt::format("\n  As a chain of {}:\n\n", counted(chain.stages.size(), "stage")) +
         stages_text(workload, chain, style);
  if (cut.stages.size() != chain.stages.size())
    out += fmt::format("\n  For pipelines, which hand on what several stages read, of {}:\n\n",
                       counted(cut.stages.size(), "stage")) +
           stages_text(workload, cut, style);
  return out;
}

}  // namespace

std::string list_workloads(const std::string& name, const Style& style) {
  const SearchPath search(".");
  if (!name.empty())
    return describe_workload(build(read_workload(search.read(name, kWorkloadKind, {}))), style);
  using enum Column::Align;
  TextTable table(
      {{"workload"}, {"parameters", right}, {"MACs", right}, {"saved", right}, {"stages", right}});
  Complaints complaints;
  for (const std::string& each : search.names(kWorkloadKind))
    complaints.gather([&] {
      const Workload workload = build(read_workload(search.read(each, kWorkloadKind, {})));
      table.add({{each},
                 {known_or_unknown(workload.parameters)},
                 {known_or_unknown(workload.macs)},
                 {to_text(workload.saved_bytes)},
                 {fmt::format("{}", chain_view(workload).stages.size())}});
    });
  complaints.throw_if_any();
  return table.text(style, 0) + "\nOne sample, fp32; `saved` is what the backward needs.\n";
}

}  // namespace plimsoll
