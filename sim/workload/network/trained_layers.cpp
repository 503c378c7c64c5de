#include "workload/network/trained_layers.hpp"

namespace plimsoll {
namespace {

/// So many names are searched for the nearest one.
constexpr std::size_t kMaxNames = 2000;

}  // namespace

TrainedLayers::TrainedLayers(const WorkloadOptions& options)
    : default_(options.trained.value_or(options.lora ? Trained{Trained::What::none, kWhole}
                                                     : Trained{})),
      first_(options.trained_from),
      is_reached_(!options.trained_from) {}

Trained TrainedLayers::of(const std::string& name, const std::optional<Trained>& said) {
  if (!is_reached_) {
    is_reached_ = name == first_->value || name.starts_with(first_->value + "/");
    if (names_.size() < kMaxNames) names_.push_back(name);
  }
  if (!is_reached_) return {Trained::What::none, kWhole};
  return said.value_or(default_);
}

void TrainedLayers::check() const {
  if (is_reached_) return;
  Diagnostics diagnostics;
  diagnostics.error(first_->where,
                    "no layer is named `" + first_->value +
                        "`; expected one as in "
                        "`plimsoll list workloads`",
                    did_you_mean(first_->value, names_));
  diagnostics.throw_if_errors();
}

}  // namespace plimsoll
