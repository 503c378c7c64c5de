/// Buffers with lifetimes as a CSV file, in MiniMalloc's form.
///
///   file    header row, then a row a buffer; empty lines are read over
///   header  `id`, `lower`, `upper` and `size` in any order; `offset` where some buffers have to
///           lie at given offsets, `alignment` where offsets are multiples of something
///   cell    a text, or a text in double quotes, with an inner quote written twice; blanks around
///           it are read over. `offset` and `alignment` (1 B) may be empty
///
/// Lifetimes are half-open; sizes and offsets are whole numbers of bytes. Columns of other programs
/// that would change the answer (`gaps`, `hint`) are refused.
#pragma once

#include "memory/placement/buffers.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

struct BufferList {
  std::string origin;  ///< of messages: the path as it was given
  std::vector<std::string> ids;
  std::vector<TimedBuffer> buffers;
  std::vector<int> lines;      ///< where each is in the file
  bool has_alignment = false;  ///< the file has that column
};

inline constexpr std::size_t kMostListedBuffers = 100'000;
inline constexpr std::int64_t kLatestTime = std::int64_t{1} << 60;  ///< and, negated, the earliest

/// Throws InputError with all that is wrong, by line and column: columns that are missing, unknown
/// or there twice, cells that are no whole numbers, ids that are there twice, lifetimes that end
/// before they start, sizes that add up to more than kMostPlacedBytes, given offsets that collide;
/// more than kMostListedBuffers rows, files above 64 MiB. O(text + buffers log buffers + pairs of
/// given offsets).
[[nodiscard]] BufferList read_buffers_csv(const std::filesystem::path& path);
/// The same from text; `origin` stands for the path in messages.
[[nodiscard]] BufferList parse_buffers_csv(std::string_view text, const std::string& origin);

/// The rows in the order in which they were read: `id,lower,upper,size,offset`, with `alignment` in
/// front of the last where the list has it.
[[nodiscard]] std::string buffers_csv(const BufferList& list, std::span<const Bytes> offsets);

}  // namespace plimsoll
