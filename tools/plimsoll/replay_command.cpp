#include "commands.hpp"
#include "output.hpp"
#include "report/replay/replay_report.hpp"

#include <limits>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kReplayExamples =
    "FILE is a JSON list of {\"op\": \"alloc\", \"id\": \"x\", \"bytes\": 1024, \"stream\": 0} "
    "and\n"
    "{\"op\": \"free\", \"id\": \"x\"}, or a memory snapshot of PyTorch. See docs/allocators.md.\n"
    "Several --allocator, or several values of one setting, are compared in a table; without, the\n"
    "table has all allocators and the main settings of `caching`.\n"
    "Examples:\n"
    "  plimsoll replay snapshot.pickle\n"
    "  plimsoll replay trace.json --allocator caching --set expandable_segments=true\n"
    "  plimsoll replay trace.json --capacity '48 MiB' --allocator caching --allocator bfc\n"
    "  plimsoll replay trace.json --allocator best-fit --snapshot trace.pickle\n"
    "Exit codes: 0 every request was served; 1 out of memory; 2 bad input; 130 interrupted.";

struct ReplayArguments {
  std::string file, capacity, json, snapshot;
  std::vector<std::string> allocators, set;
  std::int64_t device = -1, steps = 40;
  bool no_color = false;
};

int run(const ReplayArguments& arguments) {
  check_files(
      {{"--json", arguments.json}, {"--snapshot", arguments.snapshot, NamedFile::Kind::other}},
      {{"FILE", arguments.file}});
  ReplayRequest request{.path = arguments.file,
                        .allocators = arguments.allocators,
                        .set = arguments.set,
                        .steps = static_cast<std::size_t>(arguments.steps)};
  if (!arguments.capacity.empty()) request.capacity = arguments.capacity;
  if (arguments.device >= 0) request.device = arguments.device;
  if (!arguments.json.empty()) request.steps = std::numeric_limits<std::size_t>::max();
  ReplayReport report = run_replay(request);
  if (!arguments.snapshot.empty()) write_replay_snapshot(report, arguments.snapshot);
  if (!arguments.json.empty()) write_text(arguments.json, replay_json(report));
  if (arguments.json != "-") {
    if (report.steps.size() > static_cast<std::size_t>(arguments.steps))
      report.steps.resize(static_cast<std::size_t>(arguments.steps));
    print(replay_text(report, style_of_output(arguments.no_color)));
  }
  return report.replayed.is_ok() ? kExitFine : kExitSaysNo;
}

}  // namespace

Command replay_command(CLI::App& program) {
  const auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = program.add_subcommand(
      "replay", "Plays a trace of allocations, or a memory snapshot, on allocators.");
  command->footer(kReplayExamples);
  command->add_option("FILE", arguments->file, "a trace (JSON) or a memory snapshot (pickle)")
      ->required();
  command
      ->add_option(
          "--allocator", arguments->allocators,
          "the allocator (caching): a name, or a mapping as in a platform; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KIND");
  command
      ->add_option("--set", arguments->set,
                   "a setting of the allocators that have it; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command
      ->add_option("--capacity", arguments->capacity,
                   "the size of the memory (as the file says, else unlimited)")
      ->type_name("SIZE");
  command->add_option("--device", arguments->device, "of a snapshot, from 0 (the first in use)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1023}));
  command->add_option("--steps", arguments->steps, "how many steps the text shows (40)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{10'000'000}));
  add_file(*command, "--json", arguments->json,
           "write every step and the comparison as JSON; `-` is standard output");
  add_file(*command, "--snapshot", arguments->snapshot,
           "write a memory snapshot for PyTorch's memory_viz");
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
