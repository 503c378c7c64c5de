#include "report/text/text_table.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {

namespace {

constexpr std::size_t kGap = 2;

/// A column of words is wrapped where it has as much room at least.
constexpr std::size_t kLeastWords = 20;

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string padded(const std::string& text, std::size_t width, Column::Align align,
                   const std::string& painted) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return align == Column::Align::right ? space + painted : painted + space;
}

void end_line(std::string& out) {
  out.erase(out.find_last_not_of(' ') + 1);
  out += '\n';
}

}  // namespace

void TextTable::add(std::vector<Cell> row) {
  assert(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = width_of(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c].text));
    widths.push_back(width);
  }
  return widths;
}

std::vector<std::vector<std::size_t>> TextTable::blocks(const std::vector<std::size_t>& widths,
                                                        std::size_t room) const {
  std::vector<std::size_t> names(keys_);
  std::size_t width_of_names = 0;
  for (std::size_t c = 0; c < keys_; ++c) {
    names[c] = c;
    width_of_names += widths[c] + kGap;
  }
  std::vector<std::vector<std::size_t>> blocks{names};
  std::size_t used = width_of_names;
  for (std::size_t c = keys_; c < columns_.size(); ++c) {
    const bool wraps = c + 1 == columns_.size() && columns_[c].align == Column::Align::left;
    const std::size_t least = std::max(kLeastWords, width_of(columns_[c].header));
    const std::size_t needed = wraps ? std::min(widths[c], least) : widths[c];
    if (used + needed > room && blocks.back().size() > keys_) {
      blocks.push_back(names);
      used = width_of_names;
    }
    blocks.back().push_back(c);
    used += widths[c] + kGap;
  }
  return blocks;
}

std::string TextTable::block_text(const std::vector<std::size_t>& shown,
                                  std::vector<std::size_t> width, const Style& style,
                                  std::size_t indent) const {
  std::size_t before_last = indent;
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) before_last += width[shown[i]] + kGap;
  const std::size_t last = shown.back();
  const std::size_t left = kReportWidth - std::min(kReportWidth, before_last);
  const bool wraps = columns_[last].align == Column::Align::left;
  const std::size_t room_of_last = wraps ? std::max(left, kLeastWords) : width[last];
  width[last] = std::min(width[last], room_of_last);

  const std::string margin(indent, ' ');
  std::string out;
  const auto line = [&](const auto& cell_text) {
    out += margin;
    for (const std::size_t c : shown) out += cell_text(c) + std::string(kGap, ' ');
    end_line(out);
  };
  line([&](std::size_t c) {
    const std::string& header = columns_[c].header;
    return padded(header, width[c], columns_[c].align, style(Paint::bold, header));
  });
  line([&](std::size_t c) { return style(Paint::dim, repeated("─", width[c])); });
  for (const auto& row : rows_)
    line([&](std::size_t c) {
      const Cell& cell = row[c];
      if (c == last && width_of(cell.text) > room_of_last)
        return style(cell.paint, wrapped(cell.text, before_last + room_of_last, before_last));
      return padded(cell.text, width[c], columns_[c].align, style(cell.paint, cell.text));
    });
  return out;
}

std::string TextTable::text(const Style& style, std::size_t indent) const {
  const std::vector<std::size_t> width = widths();
  std::string out;
  for (const auto& shown : blocks(width, kReportWidth - indent))
    out += (out.empty() ? "" : "\n") + block_text(shown, width, style, indent);
  return out;
}

}  // namespace plimsoll
