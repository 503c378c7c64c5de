#include "commands.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "progress.hpp"
#include "report/sweep/sweep_report.hpp"
#include "report_formats.hpp"
#include "scenario/sweep/sweep_jobs.hpp"

#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kSweepExamples =
    "The results are one SQLite file: `plimsoll export` writes them as CSV or JSON lines. A run "
    "that\n"
    "fails is a row with its status. After an interruption, --resume runs what is missing.\n"
    "Examples:\n"
    "  plimsoll sweep links.yaml --out links.sqlite\n"
    "  plimsoll sweep links.yaml --out links.sqlite --resume --jobs 4\n"
    "  plimsoll sweep links.yaml --out links.sqlite --html links.html\n"
    "  plimsoll sweep links.yaml --shard 0/2 --out part-0.sqlite        on one machine\n"
    "  plimsoll sweep links.yaml --shard 1/2 --out part-1.sqlite        on another\n"
    "  plimsoll sweep links.yaml --merge part-0.sqlite part-1.sqlite --out links.sqlite\n"
    "Exit codes: 0 every point was run; 1 some could not be: rows of status `error`; 2 bad input.";

struct SweepArguments {
  std::string sweep, out, shard;
  Reports<Database> reports{&ReportFormat::of_sweep};
  std::vector<std::string> merge;
  unsigned jobs = 0;
  std::int64_t limit_work = WorkMeter::kNoLimit;
  bool resume = false, no_color = false;
};

/// "I/N" with I below N.
SweepShard shard_of(const std::string& text) {
  if (text.empty()) return {};
  SweepShard shard;
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  if (first == std::errc{} && slash != end && *slash == '/') {
    const auto [last, second] = std::from_chars(slash + 1, end, shard.count);
    if (second == std::errc{} && last == end && shard.index < shard.count) return shard;
  }
  refuse("--shard",
         fmt::format("found `{}`; expected I/N with I from 0 to N - 1, such as 0/4", text));
}

void run_all(const SweepArguments& arguments, const Sweep& sweep) {
  const SweepShard shard = shard_of(arguments.shard);
  SweepResults results = arguments.resume ? SweepResults::resume(arguments.out, sweep, shard)
                                          : SweepResults::create(arguments.out, sweep, shard);
  Progress progress(shard.size(sweep.points()), results.done(), "runs");
  run_sweep(
      sweep, shard, arguments.jobs, results, [&](std::size_t done) { progress.update(done); },
      arguments.limit_work);
}

int run(const SweepArguments& arguments) {
  if (!arguments.merge.empty() && (arguments.resume || !arguments.shard.empty()))
    refuse("--merge", "joins what was run; expected it without --resume and --shard");
  std::vector<NamedFile> read{{"SWEEP", arguments.sweep}};
  for (const std::string& part : arguments.merge) read.push_back({"--merge", part});
  std::vector<NamedFile> written = arguments.reports.files();
  written.push_back({"--out", arguments.out, NamedFile::Kind::other});
  check_files(written, read);
  arguments.reports.require();
  const Sweep sweep = load_sweep(arguments.sweep);
  print_diagnostics(sweep.warnings);
  if (sweep.fastest && (!arguments.shard.empty() || !arguments.merge.empty()))
    refuse(arguments.shard.empty() ? "--merge" : "--shard",
           "the sweep looks for the fastest of all points, which no shard knows; expected it "
           "without `fastest`, or without shards");
  if (arguments.merge.empty()) {
    run_all(arguments, sweep);
  } else {
    const std::vector<std::filesystem::path> parts(arguments.merge.begin(), arguments.merge.end());
    merge_sweep_results(sweep, parts, arguments.out);
  }
  const Database results(arguments.out, Database::Mode::read_only);
  arguments.reports.write(results);
  if (!arguments.reports.take_output())
    print(sweep_report(results, style_of_output(arguments.no_color)));
  return count_errors(results) > 0 ? kExitSaysNo : kExitFine;
}

}  // namespace

Command sweep_command(CLI::App& program) {
  const auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = program.add_subcommand(
      "sweep", "Runs a scenario at every point of a grid and writes an SQLite file.");
  command->footer(kSweepExamples);
  command->add_option("SWEEP", arguments->sweep, "the sweep")->required();
  command->add_option("--out", arguments->out, "the results file")->required()->type_name("FILE");
  add_jobs(*command, arguments->jobs);
  add_limit_work(*command, arguments->limit_work);
  command->add_option("--shard", arguments->shard, "only every N-th point, from point I on")
      ->type_name("I/N");
  command->add_flag("--resume", arguments->resume,
                    "continue the file of an interrupted sweep; start one if there is none");
  command
      ->add_option("--merge", arguments->merge,
                   "run nothing; join the results of all shards (ignores *.tmp.*)")
      ->type_name("PART...");
  arguments->reports.add_options(*command);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
