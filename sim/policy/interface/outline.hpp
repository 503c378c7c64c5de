/// What a pipeline would do, before any of it is planned: its tasks by device.
///
/// It costs a few bytes a task, where the plan costs some for each operator of each. Whoever wants to know
/// whether many microbatches repeat what few do asks for outlines (Problem::outline).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

struct Outline {
  struct Task {
    std::uint32_t slot = 0;
    std::uint32_t microbatch = 0;
    std::uint16_t kind = 0;
    std::uint16_t steps = 0;  ///< that it runs on the stream of its device

    friend bool operator==(const Task&, const Task&) = default;
  };
  std::vector<std::vector<Task>> orders;  ///< by device
  std::string rest;  ///< all else that the plan follows from; equal for equal plans
  std::uint32_t count =
      0;  ///< how many plans were asked for: with several, which is taken is not known
  bool is_whole = true;  ///< it tells all; else tasks depend on what an outline leaves out
};

}  // namespace plimsoll
