#include "commands.hpp"
#include "lists.hpp"
#include "output.hpp"

#include <memory>

#include <CLI/CLI.hpp>

namespace plimsoll {

namespace {

constexpr const char* kListExamples =
    "Names are those found beside you (platforms/, workloads/), in the folders of PLIMSOLL_PATH, "
    "and\n"
    "among what ships. With a NAME, one thing in full: a platform's numbers with their sources and "
    "its\n"
    "recompute-or-page break-even, a workload's stages, a policy's paper, promises and "
    "parameters.\n"
    "Examples:\n"
    "  plimsoll list platforms\n"
    "  plimsoll list platforms v100-sxm2-host\n"
    "  plimsoll list workloads vgg19\n"
    "  plimsoll list policies offload/eager";

struct ListArguments {
  std::string kind, name;
  bool no_color = false;
};

int run(const ListArguments& arguments) {
  const Style style = style_of_output(arguments.no_color);
  if (arguments.kind == "platforms") print(list_platforms(arguments.name, style));
  if (arguments.kind == "workloads") print(list_workloads(arguments.name, style));
  if (arguments.kind == "policies") print(list_policies(arguments.name, style));
  return kExitFine;
}

}  // namespace

Command list_command(CLI::App& program) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = program.add_subcommand("list", "Lists platforms, workloads and policies.");
  command->footer(kListExamples);
  command->add_option("KIND", arguments->kind, "what to list")
      ->required()
      ->check([](const std::string& word) {
        return problem_with_word(word,
                                 std::vector<std::string>{"platforms", "workloads", "policies"});
      })
      ->type_name("platforms|workloads|policies");
  command->add_option("NAME", arguments->name, "print this one in full")->type_name(" ");
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
