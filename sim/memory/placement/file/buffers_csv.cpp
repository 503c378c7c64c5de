#include "memory/placement/file/buffers_csv.hpp"

#include "base/diagnostic.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::uintmax_t kMostBytesOfFile = std::uintmax_t{64} << 20;
constexpr std::size_t kLongestShown = 64;
constexpr std::size_t kLongestId = 1024;

enum Column : std::uint8_t { id, lower, upper, size, offset, alignment, columns };
const std::array<std::string, columns> kNames{"id",   "lower",  "upper",
                                              "size", "offset", "alignment"};
constexpr const char* kExpected =
    "expected `id`, `lower`, `upper`, `size` and perhaps `offset` and `alignment`";
constexpr std::array<std::string_view, 3> kRefused{"gap", "gaps", "hint"};

struct Field {
  std::string text;
  int column = 0;  ///< where it starts, from 1
};

/// The cells of one line.
class RowReader {
 public:
  RowReader(std::string_view row, Location where, Diagnostics& diagnostics)
      : row_(row), where_(std::move(where)), diagnostics_(diagnostics) {}

  /// Nothing after reporting.
  std::optional<std::vector<Field>> read() {
    std::vector<Field> fields;
    while (true) {
      if (!read_field(fields.emplace_back())) return std::nullopt;
      if (at_ == row_.size()) break;
      ++at_;  // the comma
    }
    return fields;
  }

 private:
  void skip_blanks() {
    while (at_ < row_.size() && (row_[at_] == ' ' || row_[at_] == '\t' || row_[at_] == '\r')) ++at_;
  }

  bool read_field(Field& field) {
    skip_blanks();
    field.column = static_cast<int>(at_) + 1;
    if (at_ < row_.size() && row_[at_] == '"') return read_quoted(field);
    const std::size_t end = std::min(row_.find(',', at_), row_.size());
    std::string_view text = row_.substr(at_, end - at_);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
      text.remove_suffix(1);
    field.text = text;
    at_ = end;
    return true;
  }

  bool read_quoted(Field& field) {
    for (++at_; at_ < row_.size(); ++at_) {
      if (row_[at_] == '"' && (at_ + 1 == row_.size() || row_[at_ + 1] != '"')) {
        ++at_;
        skip_blanks();
        if (at_ == row_.size() || row_[at_] == ',') return true;
        return refuse(static_cast<int>(at_) + 1,
                      "found more behind the closing quote; expected a comma");
      }
      if (row_[at_] == '"') ++at_;
      field.text += row_[at_];
    }
    return refuse(field.column, "the quote does not close on this line");
  }

  bool refuse(int column, std::string message) {
    where_.column = column;
    diagnostics_.error(where_, std::move(message));
    return false;
  }

  std::string_view row_;
  Location where_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
};

class BuffersReader {
 public:
  explicit BuffersReader(const std::string& origin) { list_.origin = origin; }

  BufferList read(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (std::size_t begin = 0; begin < text.size() && !diagnostics_.is_full();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ++line_;
      read_line(text.substr(begin, end - begin));
      if (!has_header_ && diagnostics_.has_errors()) break;
      begin = end + 1;
    }
    if (!has_header_ && !diagnostics_.has_errors())
      error(0, "has no header; expected the columns `id`, `lower`, `upper` and `size`");
    diagnostics_.throw_if_errors();
    check_given_offsets();
    diagnostics_.throw_if_errors();
    return std::move(list_);
  }

 private:
  void error(int column, std::string message, std::string hint = {}) {
    diagnostics_.error({list_.origin, line_, column}, std::move(message), std::move(hint));
  }

  void read_line(std::string_view row) {
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const auto fields = RowReader(row, {list_.origin, line_, 0}, diagnostics_).read();
    if (!fields) return;
    if (has_header_)
      read_buffer(*fields);
    else
      read_header(*fields);
  }

  void read_header(const std::vector<Field>& fields) {
    names_ = fields.size();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      const auto found = std::ranges::find(kNames, field.text);
      if (found == kNames.end()) {
        refuse_column(field);
        continue;
      }
      std::optional<std::size_t>& at = at_[static_cast<std::size_t>(found - kNames.begin())];
      if (at) error(field.column, fmt::format("the column `{}` is there twice", field.text));
      at = i;
    }
    for (const Column column : {id, lower, upper, size}) {
      if (!at_[column] && !diagnostics_.has_errors())
        error(1,
              fmt::format("the column `{}` is missing; expected `id`, `lower`, `upper` and `size`",
                          kNames[column]));
    }
    has_header_ = !diagnostics_.has_errors();
    list_.has_alignment = at_[alignment].has_value();
  }

  void refuse_column(const Field& field) {
    if (std::ranges::find(kRefused, field.text) != kRefused.end())
      return error(field.column,
                   fmt::format("the column `{}` is not supported; {}", field.text, kExpected));
    const std::string hint = did_you_mean(field.text, kNames);
    error(field.column,
          fmt::format("unknown column `{}`{}", visible_utf8(field.text, kLongestShown),
                      hint.empty() ? std::string("; ") + kExpected : ""),
          hint);
  }

  void read_buffer(const std::vector<Field>& fields) {
    if (fields.size() != names_)
      return error(fields.back().column,
                   fmt::format("the row has {} cells; expected {}, as in the header", fields.size(),
                               names_));
    if (list_.ids.size() == kMostListedBuffers) {
      if (!is_too_long_)
        error(1, fmt::format("there are more than {} buffers", kMostListedBuffers));
      is_too_long_ = true;
      return;
    }
    TimedBuffer buffer;
    const auto first = number(fields, lower, -kLatestTime, kLatestTime);
    const auto last = number(fields, upper, -kLatestTime, kLatestTime);
    const auto bytes = number(fields, size, 0, kMostPlacedBytes.count());
    const auto given = number_if_any(fields, offset, 0, kMostPlacedBytes.count(), 0);
    const auto unit = number_if_any(fields, alignment, 1, kMostAlignment.count(), 1);
    const bool has_id = check_id(fields[*at_[id]]);
    if (!first || !last || !bytes || !given || !unit || !has_id) return;
    if (*last <= *first)
      return error(fields[*at_[upper]].column,
                   fmt::format("`upper` is {} and `lower` {}; expected an end after the start",
                               *last, *first));
    buffer = {*first, *last, Bytes{*bytes}, std::nullopt, Bytes{*unit}};
    if (has(fields, offset)) buffer.offset = Bytes{*given};
    if (*given % *unit != 0)
      return error(
          fields[*at_[offset]].column,
          fmt::format("`offset` is {}; expected a multiple of the alignment {}", *given, *unit));
    add(fields, buffer);
  }

  [[nodiscard]] bool has(const std::vector<Field>& fields, Column column) const {
    return at_[column] && !fields[*at_[column]].text.empty();
  }

  /// Of a column that may be missing, or have empty cells.
  std::optional<std::int64_t> number_if_any(const std::vector<Field>& fields, Column column,
                                            std::int64_t least, std::int64_t most,
                                            std::int64_t otherwise) {
    if (!has(fields, column)) return otherwise;
    return number(fields, column, least, most);
  }

  void add(const std::vector<Field>& fields, const TimedBuffer& buffer) {
    if (buffer.size > kMostPlacedBytes - total_)
      return error(fields[*at_[size]].column,
                   fmt::format("all sizes together exceed {} bytes", kMostPlacedBytes.count()));
    total_ += buffer.size;
    if (buffer.offset && *buffer.offset > kMostPlacedBytes - buffer.size)
      return error(fields[*at_[offset]].column,
                   fmt::format("the buffer ends above {} bytes", kMostPlacedBytes.count()));
    list_.ids.push_back(fields[*at_[id]].text);
    list_.buffers.push_back(buffer);
    list_.lines.push_back(line_);
  }

  bool check_id(const Field& field) {
    if (field.text.empty() || field.text.size() > kLongestId) {
      error(field.column, field.text.empty()
                              ? std::string("the id is empty; expected a name")
                              : fmt::format("the id has {} bytes; expected at most {}",
                                            field.text.size(), kLongestId));
      return false;
    }
    const auto [first, is_fresh] = line_of_.try_emplace(field.text, line_);
    if (!is_fresh)
      error(field.column, fmt::format("the id `{}` is there already, in line {}",
                                      visible_utf8(field.text, kLongestShown), first->second));
    return is_fresh;
  }

  std::optional<std::int64_t> number(const std::vector<Field>& fields, Column column,
                                     std::int64_t least, std::int64_t most) {
    const Field& field = fields[*at_[column]];
    std::int64_t value = 0;
    const char* end = field.text.data() + field.text.size();
    const auto [stopped, problem] = std::from_chars(field.text.data(), end, value);
    const bool is_number = stopped == end && problem != std::errc::invalid_argument;
    if (is_number && problem == std::errc{} && least <= value && value <= most) return value;
    error(field.column,
          fmt::format("`{}` is `{}`; expected a whole number {}", kNames[column],
                      visible_utf8(field.text, kLongestShown),
                      is_number && value < least && least >= 0 && problem == std::errc{}
                          ? fmt::format("of at least {}", least)
                          : fmt::format("from {} to {}", least, most)));
    return std::nullopt;
  }

  void check_given_offsets() {
    const auto collision = given_collision(list_.buffers);
    if (!collision) return;
    const auto [later, earlier] = std::pair(std::max(collision->first, collision->second),
                                            std::min(collision->first, collision->second));
    line_ = list_.lines[later];
    error(1, fmt::format("`{}` and `{}` of line {} are alive together, and share bytes at their "
                         "given offsets",
                         visible_utf8(list_.ids[later], kLongestShown),
                         visible_utf8(list_.ids[earlier], kLongestShown), list_.lines[earlier]));
  }

  BufferList list_;
  Diagnostics diagnostics_;
  std::array<std::optional<std::size_t>, columns> at_;
  std::map<std::string, int, std::less<>> line_of_;
  std::size_t names_ = 0;
  Bytes total_;
  int line_ = 0;
  bool has_header_ = false, is_too_long_ = false;
};

std::string quoted(const std::string& text) {
  if (text.find_first_of("\",") == std::string::npos && text.front() != ' ' && text.back() != ' ')
    return text;
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"') all += '"';
    all += c;
  }
  return all + '"';
}

}  // namespace

BufferList read_buffers_csv(const std::filesystem::path& path) {
  return parse_buffers_csv(read_whole_file(path, kMostBytesOfFile, "lists of buffers"),
                           path.string());
}

BufferList parse_buffers_csv(std::string_view text, const std::string& origin) {
  return BuffersReader(origin).read(text);
}

std::string buffers_csv(const BufferList& list, std::span<const Bytes> offsets) {
  std::string text = list.has_alignment ? "id,lower,upper,size,alignment,offset\n"
                                        : "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < list.ids.size(); ++i) {
    const TimedBuffer& it = list.buffers[i];
    text += fmt::format("{},{},{},{},", quoted(list.ids[i]), it.lower, it.upper, it.size.count());
    if (list.has_alignment) text += fmt::format("{},", it.alignment.count());
    text += fmt::format("{}\n", offsets[i].count());
  }
  return text;
}

}  // namespace plimsoll
