#include "output.hpp"

#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "interrupt.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

Style style_of_output(bool no_color) {
  const char* declined = std::getenv("NO_COLOR");
  const bool declines = no_color || (declined != nullptr && *declined != '\0');
  return Style{!declines && isatty(STDOUT_FILENO) != 0};
}

namespace {

/// Length of the colour at the front of `text`, as Style writes it; 0 where there is none.
std::size_t color_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// Names come from files: what is none of our colours must not move the cursor of a terminal.
std::string for_a_terminal(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t known = utf8_length(text);
    std::size_t length = std::max<std::size_t>(known, 1);
    const auto last = static_cast<unsigned char>(text[length - 1]);
    const bool is_control =
        length == 1 ? last < 0x20 || last == 0x7F : text.starts_with('\xC2') && last < 0xA0;
    const bool is_layout = text.front() == '\n' || text.front() == '\t';
    if (const std::size_t color = color_length(text); color > 0) {
      length = color;
      shown += text.substr(0, length);
    } else if (known == 0 || (is_control && !is_layout)) {
      shown += visible_utf8(text.substr(0, length), std::string_view::npos);
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

void print(std::string_view from_files) {
  const std::string text = for_a_terminal(from_files);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw ClosedPipe{};
  refuse("standard output", fmt::format("cannot be written: {}", std::strerror(errno)));
}

void print_diagnostics(std::span<const Diagnostic> diagnostics) {
  // Where standard error takes no more there is nobody to tell.
  const auto tell = [](const std::string& line) {
    (void)std::fputs((line + '\n').c_str(), stderr);
  };
  for (const Diagnostic& diagnostic : diagnostics) tell(to_text(diagnostic));
  // Where not all are listed, a note has said how many there are.
  const bool are_all = std::ranges::count(diagnostics, Severity::note, &Diagnostic::severity) == 0;
  const auto errors = std::ranges::count(diagnostics, Severity::error, &Diagnostic::severity);
  if (are_all && errors > 1) tell(fmt::format("{} errors", errors));
}

void refuse(const std::string& origin, std::string message, std::string hint) {
  throw InputError(
      {{Severity::error, Location{origin, 0, 0}, std::move(message), std::move(hint)}});
}

std::string problem_with_word(const std::string& word, std::span<const std::string> words) {
  if (std::ranges::find(words, word) != words.end()) return {};
  const std::string hint = did_you_mean(word, words);
  return fmt::format("found `{}`; expected one of {}{}{}", word, fmt::join(words, ", "),
                     hint.empty() ? "" : "; ", hint);
}

namespace {

constexpr const char* kStandardStream = "-";

void check_standard_streams(const std::vector<NamedFile>& written,
                            const std::vector<NamedFile>& read) {
  for (const NamedFile& file : read)
    if (file.name == kStandardStream)
      refuse(file.option, "found `-`; expected the name of a file: standard input is not read");
  const NamedFile* first = nullptr;
  for (const NamedFile& file : written) {
    if (file.name != kStandardStream) continue;
    if (file.kind == NamedFile::Kind::other)
      refuse(file.option,
             "found `-`; expected the name of a file: only text goes to standard output");
    if (first != nullptr)
      refuse(file.option,
             fmt::format("`-` is standard output, which {} takes already; expected the name of a "
                         "file",
                         first->option));
    first = &file;
  }
}

}  // namespace

void check_files(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  check_standard_streams(written, read);
  const auto path_of = [](const NamedFile& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file.name));
  };
  std::map<std::filesystem::path, const char*> taken;
  for (const NamedFile& file : read)
    if (!file.name.empty()) taken.emplace(path_of(file), file.option);
  for (const NamedFile& file : written) {
    if (file.name.empty() || file.name == kStandardStream) continue;
    const auto [first, is_fresh] = taken.emplace(path_of(file), file.option);
    if (!is_fresh && !std::filesystem::is_character_file(file.name))
      refuse(file.option,
             fmt::format("`{}` is the file of {}; expected another one", file.name, first->second));
  }
}

void require_place(const std::string& name) {
  std::error_code unknown;
  const std::filesystem::file_status there = std::filesystem::status(name, unknown);
  // Who reads a pipe would take the end of a trial for the end of the report.
  const bool is_stream =
      std::filesystem::exists(there) && !is_regular_file(there) && !is_directory(there);
  if (name != kStandardStream && !is_stream) const WholeFile trial(name);
}

void write_text(const std::string& name, std::string_view text) {
  if (name == kStandardStream) return print(text);
  const WritingFiles waits;
  write_whole_file(name, text);
}

void add_file(CLI::App& command, const char* option, std::string& file, const char* about) {
  command.add_option(option, file, about)->type_name("FILE")->check([](const std::string& name) {
    return std::string(name.empty() ? "expected the name of a file" : "");
  });
}

void add_jobs(CLI::App& command, unsigned& jobs) {
  command.add_option("--jobs", jobs, "runs at a time; default: the number of cores")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
}

void add_no_color(CLI::App& command, bool& no_color) {
  command.add_flag("--no-color", no_color,
                   "no colour, not even on a terminal (like the variable NO_COLOR)");
}

}  // namespace plimsoll
