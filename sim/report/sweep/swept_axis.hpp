/// What a sweep varied, read back from its results, for pictures of them. Internal to this floor.
///
/// An axis is a variable with more than one value, or several whose values go together (those of a
/// `zip`): where each value of one variable comes with one value only of another, they are one
/// axis. So what a point is in all axes tells it from all others. Points whose values could not be
/// derived have none, and are on no picture.
#pragma once

#include "scenario/sweep/database.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// Of more values than these as many are shown, evenly spaced in the order of the sweep, the first
/// and the last among them.
inline constexpr std::int64_t kMostShownValues = 24;

/// Where a number is printed with a unit that the page does not scale, it is in `scale` of it.
struct ShownUnit {
  std::string unit;  ///< of HtmlAxis
  double scale = 1;  ///< what a number in SI units is divided by
};

/// `si` as the results have it ("B/s"; empty for plain numbers), for numbers up to `most`: "GB/s"
/// and 1e9.
[[nodiscard]] ShownUnit shown_unit(const std::string& si, double most);

struct SweptAxis {
  std::string label;  ///< its paths: "memories.hbm.capacity, memories.hbm.bandwidth"
  std::string key;    ///< in SQL, over the table `points`: what tells its values apart
  std::int64_t count = 0;
  std::vector<std::string> shown;  ///< keys, in the order of the sweep
  std::string number;              ///< in SQL, where all values are numbers; else empty
  std::string si;                  ///< unit of `number`

  [[nodiscard]] bool is_policy() const { return label == "policy"; }
};

struct SweptAxes {
  std::vector<SweptAxis> axes;     ///< from the slowest to the fastest
  std::vector<std::string> fixed;  ///< "workload.batch = 64": the same at every point
};

/// O(points log points) a variable, in constant memory.
[[nodiscard]] SweptAxes read_swept_axes(const Database& results);

/// A key as it is shown: `{name: offload/prefix, budget: 6 GiB}` without its brackets, whatever is
/// long cut.
[[nodiscard]] std::string label_of_value(const std::string& key);

}  // namespace plimsoll
