#include "base/wildcard.hpp"

#include <cstddef>

namespace plimsoll {

bool matches(std::string_view pattern, std::string_view text) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0, t = 0;
  // The last `*`, and where what it stands for ends so far. What stands before it needs no other
  // try: the first place that it matched leaves the most to the rest.
  std::size_t star = kNone, end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      end = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

}  // namespace plimsoll
