#include "policy/interface/other_names.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct OtherName {
  const char* name;
  const char* policy;  ///< or a sentence
};

constexpr const char* kSharding =
    "sharding or offloading parameters and optimizer states (ZeRO, FSDP) is not simulated; "
    "policies save activations: `remat/rotor` by recomputation, `offload/greedy` by copies, "
    "`hybrid/pofo` by both; pipelines divide the parameters between devices";
constexpr const char* kDataParallel =
    "data parallelism is a parameter of pipelines: `{name: pipeline/1f1b, data_parallel: 2}`";
constexpr const char* kWithinLayers =
    "parallelism within a layer is not simulated; `pipeline/1f1b` divides a network between "
    "devices by its layers";

constexpr OtherName kOtherNames[] = {
    {"selective", "remat/blocks"},
    {"selective-checkpointing", "remat/blocks"},
    {"selective-recompute", "remat/blocks"},
    {"selective-activation-checkpointing", "remat/blocks"},
    {"sac", "remat/blocks"},
    {"checkpointing", "remat/sqrt"},
    {"checkpoint", "remat/sqrt"},
    {"gradient-checkpointing", "remat/sqrt"},
    {"activation-checkpointing", "remat/sqrt"},
    {"checkpoint-sequential", "remat/sqrt"},
    {"chen", "remat/sqrt"},
    {"olla", "order/peak"},
    {"recompute", "remat/every-stage"},
    {"recomputation", "remat/every-stage"},
    {"rematerialization", "remat/every-stage"},
    {"full", "remat/every-stage"},
    {"full-recompute", "remat/every-stage"},
    {"full-recomputation", "remat/every-stage"},
    {"checkmate", "remat/exact"},
    {"treeverse", "remat/revolve"},
    {"binomial", "remat/revolve"},
    {"pofo", "hybrid/pofo"},
    {"best", "hybrid/best"},
    {"auto", "hybrid/best"},
    {"offload", "offload/eager"},
    {"swap", "offload/autoswap"},
    {"swapping", "offload/autoswap"},
    {"cpu-offload", "offload/save-on-cpu"},
    {"cpu-offloading", "offload/save-on-cpu"},
    {"activation-offload", "offload/save-on-cpu"},
    {"activation-offloading", "offload/save-on-cpu"},
    {"vdnn", "offload/vdnn-dyn"},
    {"te", "offload/transformer-engine"},
    {"pipeline", "pipeline/1f1b"},
    {"pp", "pipeline/1f1b"},
    {"dapple", "pipeline/1f1b"},
    {"pipedream-flush", "pipeline/1f1b"},
    {"one-forward-one-backward", "pipeline/1f1b"},
    {"afab", "pipeline/gpipe"},
    {"fthenb", "pipeline/gpipe"},
    {"f-then-b", "pipeline/gpipe"},
    {"all-forward-all-backward", "pipeline/gpipe"},
    {"interleaved", "pipeline/interleaved-1f1b"},
    {"vpp", "pipeline/interleaved-1f1b"},
    {"virtual-pipeline", "pipeline/interleaved-1f1b"},
    {"zero-bubble", "pipeline/zb-h1"},
    {"zb", "pipeline/zb-h1"},
    {"zbv", "pipeline/zb-v"},
    {"looped", "pipeline/looped-bfs"},
    {"breadth-first", "pipeline/looped-bfs"},
    {"schedule", "pipeline/csv"},
    {"baseline", "none"},
    {"keep-all", "none"},
    {"store-all", "none"},
    {"no-recompute", "none"},
    {"zero", kSharding},
    {"zero-1", kSharding},
    {"zero-2", kSharding},
    {"zero-3", kSharding},
    {"zero1", kSharding},
    {"zero2", kSharding},
    {"zero3", kSharding},
    {"zero-offload", kSharding},
    {"zero-infinity", kSharding},
    {"deepspeed", kSharding},
    {"fsdp", kSharding},
    {"fsdp2", kSharding},
    {"optimizer-offload", kSharding},
    {"ddp", kDataParallel},
    {"dp", kDataParallel},
    {"data-parallel", kDataParallel},
    {"data-parallelism", kDataParallel},
    {"tp", kWithinLayers},
    {"tensor-parallel", kWithinLayers},
    {"tensor-parallelism", kWithinLayers},
    {"sequence-parallel", kWithinLayers},
    {"context-parallel", kWithinLayers},
};

}  // namespace

std::string hint_for_other_name(std::string name) {
  for (char& c : name)
    c = c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  name.erase(0, name.rfind('/') + 1);
  const auto found =
      std::ranges::find_if(kOtherNames, [&](const OtherName& other) { return name == other.name; });
  if (found == std::end(kOtherNames)) return {};
  const std::string answer = found->policy;
  const bool is_sentence = answer.find(' ') != std::string::npos;
  return is_sentence ? answer : fmt::format("did you mean `{}`?", answer);
}

}  // namespace plimsoll
