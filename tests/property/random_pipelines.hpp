/// Random pipelines: chains cut over a row, a ring or a star of processors.
#pragma once

#include "property/random_chains.hpp"

namespace plimsoll::test {

inline std::string random_link(Dice& dice) {
  std::string keys;
  if (dice(0, 1) == 1) keys += fmt::format(", bandwidth: {} B/s", dice(1, 4));
  if (dice(0, 1) == 1) keys += fmt::format(", latency: {} s", dice(0, 3));
  if (dice(0, 2) == 0) keys += ", duplex: half";
  return keys;
}

/// `devices` processors gpu0.. with memories hbm0..: neighbours joined, or all to one switch.
inline std::string random_cluster(Dice& dice, std::int64_t devices) {
  const bool star = dice(0, 1) == 1;
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    const std::string capacity =
        dice(0, 3) == 0 ? fmt::format("{} B", dice(20, 80)) : std::string("unlimited");
    memories += fmt::format("  hbm{}: {{capacity: {}}}\n", i, capacity);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (star)
      links += fmt::format("  up{0}: {{between: [hbm{0}, sw]{1}}}\n", i, random_link(dice));
    else if (i + 1 < devices)
      links +=
          fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]{2}}}\n", i, i + 1, random_link(dice));
  }
  if (star) links = "switches: [sw]\nlinks:\n" + links;
  return "platform: cluster\nmemories:\n" + memories + "processors:\n" + processors +
         (star ? links : "links:\n" + links);
}

}  // namespace plimsoll::test
