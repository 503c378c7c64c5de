#include "base/quantity_text.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "memory/placement/file/buffers_csv.hpp"
#include "memory/placement/place.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "report/placement/placement_json.hpp"
#include "report/placement/placement_text.hpp"

#include <algorithm>
#include <charconv>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kPlaceExamples =
    "The file has a row a buffer: `id,lower,upper,size`, alive from `lower` up to and without "
    "`upper`; with\n"
    "an `offset` where a buffer has to lie, and with an `alignment` of which its offset is to be a "
    "multiple.\n"
    "See docs/placement.md.\n"
    "Examples:\n"
    "  plimsoll place buffers.csv                        the lowest end\n"
    "  plimsoll place buffers.csv --capacity '1 MiB' --out placed.csv\n"
    "  plimsoll place buffers.csv --method greedy-by-size --json -\n"
    "Exit codes: 0 placed; 1 not placed within the capacity; 2 bad input.";

constexpr std::size_t kLongestId = 64;

struct PlaceArguments {
  std::string buffers, method = "exact", capacity, out, json;
  std::int64_t work = kPlacementSteps;
  bool no_color = false;
};

/// "1 MiB", or bytes without a unit, as sizes are in the file.
Bytes capacity_of(const std::string& text) {
  std::int64_t bytes = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, bytes);
  if (!text.empty() && stopped == end && problem == std::errc{} && bytes >= 0) return Bytes{bytes};
  const Parsed<Bytes> parsed = parse_quantity<Bytes>(text);
  if (!parsed.value)
    refuse("--capacity",
           fmt::format("found `{}`; expected bytes such as 1048576, or a size such as 1 MiB",
                       visible_utf8(text, kLongestId)),
           parsed.hint);
  return *parsed.value;
}

/// No placement can be within a capacity that a single buffer exceeds.
void require_room_for_each(const BufferList& list, Bytes capacity) {
  const auto largest = std::ranges::max_element(list.buffers, {}, [](const TimedBuffer& it) {
    return it.offset.value_or(Bytes{}) + it.size;
  });
  if (largest == list.buffers.end()) return;
  const Bytes end = largest->offset.value_or(Bytes{}) + largest->size;
  if (end <= capacity) return;
  const auto at = static_cast<std::size_t>(largest - list.buffers.begin());
  throw InputError(
      {{Severity::error,
        {list.origin, list.lines[at], 1},
        fmt::format("`{}` {} {} B; expected at most the capacity, {} B",
                    visible_utf8(list.ids[at], kLongestId), largest->offset ? "ends at" : "has",
                    end.count(), capacity.count()),
        ""}});
}

/// OLLA is known by name, but orders what is not in the file: operators.
std::string problem_with_method(const std::string& name) {
  if (name == "olla")
    return "found `olla`, which orders the operators of a run, and a list of buffers has none; "
           "expected `exact` here, or the allocator `{static: {method: olla}}` of a run";
  return problem_with_word(name, placement_methods());
}

PlacementTask task_of(const PlaceArguments& arguments) {
  PlacementTask task{.rule = placement_rule(arguments.method), .limit = arguments.work};
  if (!arguments.capacity.empty()) task.capacity = capacity_of(arguments.capacity);
  return task;
}

int run(const PlaceArguments& arguments) {
  check_files({{"--out", arguments.out}, {"--json", arguments.json}},
              {{"BUFFERS", arguments.buffers}});
  const PlacementTask task = task_of(arguments);
  const BufferList list = read_buffers_csv(arguments.buffers);
  if (task.capacity) require_room_for_each(list, *task.capacity);
  for (const std::string& file : {arguments.out, arguments.json})
    if (!file.empty() && file != "-") require_place(file);
  const PlacementAnswer answer = [&] {
    Planning planning(arguments.method, WorkMeter::kNoLimit);
    return place(list.buffers, task, planning.work());
  }();
  if (arguments.out != "-" && arguments.json != "-")
    print(placement_text(list, answer, style_of_output(arguments.no_color)));
  const WritingFiles writing;
  if (!arguments.json.empty()) write_text(arguments.json, placement_json(list, answer));
  if (answer.found.fit != Fit::fits) return kExitSaysNo;
  if (!arguments.out.empty()) write_text(arguments.out, buffers_csv(list, answer.found.offsets));
  return kExitFine;
}

}  // namespace

Command place_command(CLI::App& program) {
  const auto arguments = std::make_shared<PlaceArguments>();
  CLI::App* command = program.add_subcommand(
      "place", "Places buffers with known lifetimes in one memory, ahead of time.");
  command->footer(kPlaceExamples);
  command->add_option("BUFFERS", arguments->buffers, "a CSV file of buffers")->required();
  command
      ->add_option("--capacity", arguments->capacity,
                   "find a placement within it, or the proof that there is none; default: the "
                   "lowest end")
      ->type_name("SIZE");
  command
      ->add_option("--method", arguments->method,
                   "`exact` (default), or a rule: greedy-by-size, greedy-by-lifetime, "
                   "greedy-by-area, greedy-by-start, xla-spatial, xla-temporal, best")
      ->type_name("NAME")
      ->check(problem_with_method);
  command
      ->add_option("--work", arguments->work,
                   "the most steps of the exact search; the default takes about a minute, and is "
                   "the same on every machine")
      ->check(CLI::Range(std::int64_t{1}, WorkMeter::kNoLimit, "POSITIVE"))
      ->type_name("STEPS");
  add_file(*command, "--out", arguments->out,
           "write the buffers with their offsets as CSV, where they fit; `-` is standard output");
  add_file(*command, "--json", arguments->json, "write the answer as JSON; `-` is standard output");
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
