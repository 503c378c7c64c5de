#include "report/text_table.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {

namespace {

constexpr std::size_t kGap = 2;

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

std::vector<std::size_t> TextTable::shown_columns(const std::vector<std::size_t>& widths,
                                                  std::size_t room) const {
  std::vector<std::size_t> shown(columns_.size());
  for (std::size_t c = 0; c < shown.size(); ++c) shown[c] = c;
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t c : shown) sum += widths[c] + kGap;
    return sum - kGap;
  };
  while (total() > room) {
    const auto least =
        std::ranges::max_element(shown, {}, [&](std::size_t c) { return columns_[c].dispensable; });
    if (columns_[*least].dispensable == 0) break;
    shown.erase(least);
  }
  return shown;
}

std::string TextTable::text(const Style& style, std::size_t indent) const {
  std::vector<std::size_t> width = widths();
  const std::size_t room = kReportWidth - indent;
  const std::vector<std::size_t> shown = shown_columns(width, room);
  std::size_t before_last = indent;
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) before_last += width[shown[i]] + kGap;
  const std::size_t last = shown.back();
  const std::size_t left = kReportWidth - std::min(kReportWidth, before_last);
  const std::size_t room_of_last = std::max<std::size_t>(left, 20);
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

}  // namespace plimsoll
