/// Where the program's words go: results to standard output or whole files, messages to standard
/// error.
#pragma once

#include "base/diagnostic.hpp"
#include "report/text/style.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace plimsoll {

/// Colour on a terminal, unless it was declined or NO_COLOR is set to anything.
[[nodiscard]] Style style_of_output(bool no_color);

/// Whoever reads standard output has closed it, as `| head -1` does: no error, but there is nothing
/// left to do.
struct ClosedPipe {};

/// Control characters other than colours, ends of lines and tabs, and bytes that are not UTF-8, are
/// written as `\x1B`. Throws InputError where standard output takes no more, ClosedPipe where nobody reads it.
void print(std::string_view text);

/// To standard error, a line each; with more than one error, their number at the end.
void print_diagnostics(std::span<const Diagnostic> diagnostics);

/// An InputError of one sentence about a file or an argument; `origin` may be empty.
[[noreturn]] void refuse(const std::string& origin, std::string message, std::string hint = {});

/// What is wrong with a word that is none of `words`; empty where it is one. For checks of
/// arguments.
[[nodiscard]] std::string problem_with_word(const std::string& word,
                                            std::span<const std::string> words);

/// A file that a command writes, or reads, by the option that names it.
struct NamedFile {
  enum class Kind : std::uint8_t {
    text,  ///< `-` is standard output
    other  ///< databases, and what its ending says the format of: `-` is refused
  };
  const char* option;
  std::string name;  ///< empty: none
  Kind kind = Kind::text;
};
/// Throws an InputError where two of `written` are the same, or one of them is among `read`: what
/// one has written, another would overwrite. `-` is standard output for one of the texts that are
/// written, and the name of no file.
void check_files(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read = {});

/// Throws an InputError where no file can be written at `name`, which is not empty.
void require_place(const std::string& name);

/// To standard output for `-`, else to a file, whole or not at all. Throws InputError.
void write_text(const std::string& name, std::string_view text);

/// Adds an option that takes the name of a file, `--jobs N` and `--no-color` to a command.
void add_file(CLI::App& command, const char* option, std::string& file, const char* about);
void add_jobs(CLI::App& command, unsigned& jobs);
void add_no_color(CLI::App& command, bool& no_color);

/// Gathers what is wrong with several inputs, so that all is said at once.
class Complaints {
 public:
  /// Runs `part`; keeps its InputError, and what several parts find wrong once: a workload that
  /// cannot be built is so for every policy.
  void gather(auto part) {
    try {
      part();
    } catch (const InputError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics())
        if (std::ranges::find(all_, diagnostic) == all_.end()) all_.push_back(diagnostic);
    }
  }
  [[nodiscard]] bool any() const { return !all_.empty(); }
  /// Throws an InputError of all, if there are any.
  void throw_if_any() {
    if (any()) throw InputError(std::move(all_));
  }

 private:
  std::vector<Diagnostic> all_;
};

}  // namespace plimsoll
