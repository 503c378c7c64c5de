/// What a report tells of a run, for comparing two ways of making it.
#pragma once

#include "report/run/json_report.hpp"

#include <span>
#include <string>

#include <nlohmann/json.hpp>

namespace plimsoll::test {

/// All that is reported but how long planning took, and the notes.
inline std::string reported(const RunResult& result) {
  auto json = nlohmann::ordered_json::parse(json_report(std::span(&result, 1)));
  for (auto& run : json) {
    run.erase("notes");
    run.erase("planning_s");
  }
  return json.dump(1);
}

}  // namespace plimsoll::test
