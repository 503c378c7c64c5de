/// How the mesh of a run is divided, in words.
#pragma once

#include "execution/metrics.hpp"
#include "scenario/run/mesh_of_run.hpp"

#include <string>

namespace plimsoll {

/// "rings", "trees", "rings in nodes of 8 on the data axis and between them".
[[nodiscard]] std::string form_words(const MeshOfRun::Form& form);

/// "sharding stage 3: state in 8 parts over groups of 8 on the data axis, in 4 copies"; "no sharding".
[[nodiscard]] std::string sharding_words(const MeshOfRun& mesh);

/// "64 ranks: tensor 8 x pipeline 8; no sharding; collectives in rings".
[[nodiscard]] std::string mesh_words(const MeshOfRun& mesh);

/// How well the ranks are used: "53,318 tokens/s; MFU 38 %, HFU 50 %". Empty where that is not known.
[[nodiscard]] std::string use_of_ranks(const Metrics& metrics);

}  // namespace plimsoll
