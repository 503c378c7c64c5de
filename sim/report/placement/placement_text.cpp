#include "report/placement/placement_text.hpp"

#include "base/utf8.hpp"
#include "report/text/text_table.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kLongestName = 200;

std::string bytes_text(Bytes bytes) {
  const std::string exact = thousands(bytes.count()) + " B";
  const std::string rounded = to_text(bytes);
  return bytes < Bytes{10'000} ? exact : fmt::format("{} ({})", exact, rounded);
}

std::string share_above(Bytes bytes, Bytes base) {
  if (bytes == base) return "none";
  const double excess = static_cast<double>((bytes - base).count());
  return fmt::format("{}, {}", bytes_text(bytes - base),
                     percent(excess / static_cast<double>(base.count())));
}

/// What was asked, and the answer.
std::string verdict(const PlacementAnswer& answer) {
  const ExactPlacement& found = answer.found;
  if (!answer.capacity)
    return found.is_optimal() ? "placed; no placement ends lower"
                              : "placed; not proven to be the lowest end";
  const std::string capacity = bytes_text(*answer.capacity);
  switch (found.fit) {
    case Fit::fits:
      return fmt::format("fits into {}", capacity);
    case Fit::does_not_fit:
      return fmt::format("does not fit into {}; proven: no placement does", capacity);
    case Fit::unknown:
      break;
  }
  return fmt::format("no placement within {} was found; not proven that there is none", capacity);
}

}  // namespace

std::string placement_text(const BufferList& list, const PlacementAnswer& answer,
                           const Style& style) {
  const ExactPlacement& found = answer.found;
  const Paint paint = found.fit == Fit::fits ? Paint::good : Paint::bad;
  std::string text =
      fmt::format("{}   {}\n\n", style(Paint::bold, visible_utf8(list.origin, kLongestName)),
                  counted(list.buffers.size(), "buffer"));
  text += fmt::format("{}  {}\n", answer.method, style(paint, verdict(answer)));
  const auto line = [&](const char* what, const std::string& value) {
    text += fmt::format("  {:<12}{}\n", what, value);
  };
  line("end", bytes_text(found.end));
  line("lower bound", bytes_text(found.lower_bound));
  line("gap", share_above(found.end, found.lower_bound));
  line("load", bytes_text(answer.load));
  line("no reuse", bytes_text(answer.total));
  if (answer.method == "exact" && !answer.is_proven())
    text += "\n" +
            wrapped(list.buffers.size() > kMostSearchedBuffers
                        ? fmt::format("The exact search takes at most {} buffers; this is "
                                      "the best of the rules.",
                                      thousands(kMostSearchedBuffers))
                        : "The limit of work was reached; `--work` raises it.",
                    kReportWidth, 0) +
            "\n";
  return text;
}

}  // namespace plimsoll
