/// The command line. It parses, hands over to a command, and turns whatever happens into an exit
/// code and a sentence.
#include "commands.hpp"
#include "heap.hpp"
#include "interrupt.hpp"
#include "output.hpp"

#include <algorithm>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr const char* kAbout =
    "Plimsoll simulates the memory side of neural-network training: given a platform, a\n"
    "workload and a policy, it reports peak memory, throughput and energy.";

constexpr const char* kExamples =
    "Examples:\n"
    "  plimsoll list platforms\n"
    "  plimsoll run scenarios/what-if/vgg19-offload.yaml\n"
    "  plimsoll check scenarios/regression/policies.yaml\n"
    "  plimsoll validate my-board.yaml\n"
    "`plimsoll COMMAND --help` describes a command in full.\n"
    "Exit codes: 0 fine; 1 a run failed (oom, deadlock, infeasible, regression); 2 bad input "
    "or usage; 130 interrupted.";

int usage_error(const std::string& command, const std::string& message, const std::string& hint) {
  const std::string name = command.empty() ? "plimsoll" : "plimsoll " + command;
  const std::string whole = hint.empty() ? message : message + "; " + hint;
  print_diagnostics(
      std::vector<Diagnostic>{{Severity::error,
                               {name, 0, 0},
                               fmt::format("{} (`{} --help` tells more)", whole, name),
                               ""}});
  return kExitBadInput;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What CLI11 has to say, with the nearest name where a word is not known.
int explain(const CLI::ParseError& error, const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  const CLI::App& app = chosen.empty() ? program : *chosen.front();
  const std::string command = chosen.empty() ? "" : app.get_name();
  if (const auto extras = app.remaining(); !extras.empty()) {
    const std::string& word = extras.front();
    return usage_error(command, fmt::format("unknown argument `{}`", word),
                       did_you_mean(word.substr(0, word.find('=')), option_names(app)));
  }
  return usage_error(command, error.what(), "");
}

/// The first word is a command, or an option that stands alone.
int check_first_word(int argc, const char* const* argv, const std::vector<Command>& commands) {
  if (argc < 2) return usage_error("", "a command is missing", "");
  const std::string word = argv[1];
  if (word.starts_with('-')) return kExitFine;
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.arguments->get_name());
  if (std::ranges::find(names, word) != names.end()) return kExitFine;
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = fmt::format("the commands are {}", fmt::join(names, ", "));
  return usage_error("", fmt::format("unknown command `{}`", word), hint);
}

int run_program(int argc, const char* const* argv) {
  CLI::App program(kAbout, "plimsoll");
  program.footer(kExamples);
  program.set_version_flag("--version", "plimsoll " PLIMSOLL_VERSION);
  program.require_subcommand(1);
  const std::vector<Command> commands{run_command(program),      sweep_command(program),
                                      check_command(program),    export_command(program),
                                      capacity_command(program), calibrate_command(program),
                                      place_command(program),    replay_command(program),
                                      list_command(program),     validate_command(program)};
  if (const int refused = check_first_word(argc, argv, commands)) return refused;
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    return explain(error, program);
  }
  const auto chosen = std::ranges::find_if(
      commands, [](const Command& command) { return command.arguments->parsed(); });
  return chosen->run();
}

int guarded(int argc, const char* const* argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run_program(argc, argv);
  } catch (const InputError& error) {
    print_diagnostics(error.diagnostics());
  } catch (const ClosedPipe&) {
    // Unwound, so that no half of a file is left: now end as every filter does.
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "plimsoll: error: this machine has too little memory for the scenario\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "plimsoll: error: internal: {}; please report it with the input\n",
               error.what());
  }
  return kExitBadInput;
}

}  // namespace

}  // namespace plimsoll

int main(int argc, char** argv) {
  plimsoll::prepare_heap();
  plimsoll::end_on_interrupt();
  return plimsoll::guarded(argc, argv);
}
