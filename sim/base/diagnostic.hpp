/// Errors and warnings about an input: file:line:column, what was found, what was expected, and the
/// nearest valid name.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// A place in an input. `origin` is a file's path as the user wrote it, or "--set #2" for a value
/// from the command line. Line and column count from 1; 0 where there is none.
struct Location {
  std::string origin;
  int line = 0;
  int column = 0;
  bool operator==(const Location&) const = default;
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Location where;
  std::string message;  ///< one sentence: what was found, what was expected
  std::string hint;     ///< "did you mean `bandwidth`?" or empty
  bool operator==(const Diagnostic&) const = default;
};

/// "scenario.yaml:3:5: error: unknown key `bandwith`; did you mean `bandwidth`?" One line of valid
/// UTF-8 without control characters, whatever the input holds (see visible_utf8).
[[nodiscard]] std::string to_text(const Diagnostic&);

/// Thrown once per input, with everything that is wrong with it, in the order of the text.
class InputError : public std::exception {
 public:
  explicit InputError(std::vector<Diagnostic> diagnostics);
  [[nodiscard]] std::span<const Diagnostic> diagnostics() const { return diagnostics_; }
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string what_;
};

/// Throws the InputError of one error at `where`.
[[noreturn]] void refuse(Location where, std::string message, std::string hint = {});

/// Collects the diagnostics of one input.
class Diagnostics {
 public:
  /// After kMaxErrors further errors are counted but not kept; so are warnings. An error that is
  /// there already counts once.
  static constexpr std::size_t kMaxErrors = 100;

  void error(Location where, std::string message, std::string hint = {});
  void warning(Location where, std::string message, std::string hint = {});

  [[nodiscard]] bool has_errors() const { return errors_ > 0; }
  /// Further errors are only counted: their messages need not be made.
  [[nodiscard]] bool is_full() const { return errors_ >= kMaxErrors; }
  [[nodiscard]] std::span<const Diagnostic> all() const { return diagnostics_; }
  [[nodiscard]] std::vector<Diagnostic> warnings() const;

  /// Throws InputError if there was an error.
  void throw_if_errors() const;

 private:
  std::vector<Diagnostic> diagnostics_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

/// The candidate nearest to `found` by edit distance (any case; two neighbours exchanged are one
/// edit), or "" where none is near (distance above a third of the longer length). Where none is,
/// and `found` has no slash, by what stands behind the last slash of each. Ties go to the first.
/// O(candidates x length^2); texts above 64 bytes are near nothing.
[[nodiscard]] std::string nearest(std::string_view found, std::span<const std::string> candidates);

/// "did you mean `X`?" for nearest(), or "".
[[nodiscard]] std::string did_you_mean(std::string_view found,
                                       std::span<const std::string> candidates);

}  // namespace plimsoll
