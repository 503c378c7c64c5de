#include "base/diagnostic.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace plimsoll {

std::string to_text(const Diagnostic& diagnostic) {
  std::string text = diagnostic.where.origin;
  if (diagnostic.where.line > 0) {
    text += ':' + std::to_string(diagnostic.where.line);
    if (diagnostic.where.column > 0) text += ':' + std::to_string(diagnostic.where.column);
  }
  if (!text.empty()) text += ": ";
  constexpr std::array kSeverities{"error: ", "warning: ", "note: "};
  text += kSeverities[static_cast<std::size_t>(diagnostic.severity)];
  text += diagnostic.message;
  if (!diagnostic.hint.empty()) text += "; " + diagnostic.hint;
  // Names, values and paths are whatever a file holds: no terminal is to obey them.
  return visible_utf8(text, std::string_view::npos);
}

namespace {

/// Orders by the place in the text; origins stay in the order in which they first occur.
void sort_by_place(std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, std::size_t> rank;
  for (const Diagnostic& d : diagnostics) rank.emplace(d.where.origin, rank.size());
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) {
                     const auto key = [&](const Location& where) {
                       return std::tuple(rank.at(where.origin), where.line, where.column);
                     };
                     return key(a.where) < key(b.where);
                   });
}

}  // namespace

InputError::InputError(std::vector<Diagnostic> diagnostics) : diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& d : diagnostics_) {
    if (!what_.empty()) what_ += '\n';
    what_ += to_text(d);
  }
}

void refuse(Location where, std::string message, std::string hint) {
  throw InputError({{Severity::error, std::move(where), std::move(message), std::move(hint)}});
}

void Diagnostics::error(Location where, std::string message, std::string hint) {
  Diagnostic error{Severity::error, std::move(where), std::move(message), std::move(hint)};
  // What `repeat:` writes once is wrong once.
  if (std::ranges::find(diagnostics_, error) != diagnostics_.end()) return;
  if (errors_++ < kMaxErrors) diagnostics_.push_back(std::move(error));
}

void Diagnostics::warning(Location where, std::string message, std::string hint) {
  if (warnings_++ < kMaxErrors)
    diagnostics_.push_back(
        {Severity::warning, std::move(where), std::move(message), std::move(hint)});
}

std::vector<Diagnostic> Diagnostics::warnings() const {
  std::vector<Diagnostic> found;
  std::copy_if(diagnostics_.begin(), diagnostics_.end(), std::back_inserter(found),
               [](const Diagnostic& d) { return d.severity == Severity::warning; });
  return found;
}

namespace {

/// A warning of the same words: a part of an input may be judged in several ways.
bool is_said_by_an_error(Diagnostic warning, std::span<const Diagnostic> all) {
  if (warning.severity != Severity::warning) return false;
  warning.severity = Severity::error;
  return std::ranges::find(all, warning) != all.end();
}

}  // namespace

void Diagnostics::throw_if_errors() const {
  if (!has_errors()) return;
  std::vector<Diagnostic> all = diagnostics_;
  std::erase_if(all, [this](const Diagnostic& d) { return is_said_by_an_error(d, diagnostics_); });
  sort_by_place(all);
  if (errors_ > kMaxErrors) {
    const std::size_t more = errors_ - kMaxErrors;
    Diagnostic rest;
    rest.severity = Severity::note;
    rest.where.origin = all.back().where.origin;
    rest.message = "and " + std::to_string(more) + " further error" + (more == 1 ? "" : "s") +
                   ", " + std::to_string(errors_) + " in all";
    all.push_back(std::move(rest));
  }
  throw InputError(std::move(all));
}

namespace {

constexpr std::size_t kLongestCompared = 64;

char folded(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Edits that turn `a` into `b`: insert, remove, replace, exchange two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kLongestCompared + 1>;
  Row before{}, above{}, row{};
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = folded(a[i - 1]) == folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
          folded(a[i - 2]) == folded(b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

namespace {

/// The candidate of which `part` is nearest, or "".
template <class Part>
std::string nearest_by(std::string_view found, std::span<const std::string> candidates, Part part) {
  std::string best;
  std::size_t best_distance = kLongestCompared + 1;
  for (const std::string& candidate : candidates) {
    const std::string_view compared = part(candidate);
    if (compared.size() > kLongestCompared) continue;
    const std::size_t distance = edit_distance(found, compared);
    if (distance <= std::max(found.size(), compared.size()) / 3 && distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

std::string nearest(std::string_view found, std::span<const std::string> candidates) {
  if (found.empty() || found.size() > kLongestCompared) return "";
  std::string best =
      nearest_by(found, candidates, [](std::string_view candidate) { return candidate; });
  if (!best.empty() || found.find('/') != std::string_view::npos) return best;
  return nearest_by(found, candidates, [](std::string_view candidate) {
    return candidate.substr(candidate.rfind('/') + 1);
  });
}

std::string did_you_mean(std::string_view found, std::span<const std::string> candidates) {
  const std::string name = nearest(found, candidates);
  return name.empty() ? "" : "did you mean `" + name + "`?";
}

}  // namespace plimsoll
