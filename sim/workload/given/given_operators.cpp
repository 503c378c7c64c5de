#include "workload/given/given_operators.hpp"

#include <string_view>
#include <unordered_map>

namespace plimsoll {

std::string backward_problem(const std::optional<Time>& whole,
                             const std::optional<Time>& input_half,
                             const std::optional<Time>& weight_half) {
  if (whole && (input_half || weight_half))
    return "gives both `backward` and its halves; expected one or the other";
  if (!whole && !input_half && !weight_half)
    return "no backward; expected `backward`, or `backward_input` and `backward_weight`";
  if (!whole && !(input_half && weight_half))
    return input_half ? "`backward_input` without `backward_weight`"
                      : "`backward_weight` without `backward_input`";
  return {};
}

Time whole_backward(const std::optional<Time>& whole, const std::optional<Time>& input_half,
                    const std::optional<Time>& weight_half) {
  return whole ? *whole : input_half.value_or(Time{}) + weight_half.value_or(Time{});
}

void report(const Node& node, std::span<const std::string> keys, const std::string& what,
            const std::string& problem, Diagnostics& diagnostics) {
  const Node* name = node.find("name");
  const bool named = name != nullptr && name->is_scalar();
  diagnostics.error(place_of(node, keys),
                    (named ? what + ' ' + name->describe() : "this " + what) + ": " + problem);
}

void check_names(const Node& list, const std::string& what, Diagnostics& diagnostics) {
  const std::vector<std::string> keys{"name"};
  std::unordered_map<std::string_view, const Node*> first_of;
  for (const Node& item : list.items()) {
    const Node* name = item.find("name");
    if (name == nullptr || !name->is_scalar()) continue;
    const auto [first, fresh] = first_of.emplace(name->scalar(), &item);
    if (fresh) continue;
    const int line = first->second->where().line;
    report(item, keys, what,
           "this name was given to another " + what +
               (line > 0 ? " at line " + std::to_string(line) : ""),
           diagnostics);
  }
}

GivenParameters add_parameters(WorkloadBuilder& builder, const std::string& owner, Bytes bytes,
                               Optimizer optimizer, bool updated) {
  GivenParameters given;
  if (bytes == Bytes{} && !updated) return given;
  given.parameters = builder.add(
      Tensor{owner + ".parameters", bytes, TensorClass::parameter, Lifetime::resident, kNoTensor});
  given.gradient = builder.add(Tensor{owner + ".parameters.gradient", bytes, TensorClass::gradient,
                                      Lifetime::accumulated, kNoTensor});
  given.resident.push_back(given.parameters);
  if (const std::int64_t states = states_of(optimizer).value_or(0); states > 0)
    given.resident.push_back(
        builder.add(Tensor{owner + ".optimizer_state", bytes * states, TensorClass::optimizer_state,
                           Lifetime::resident, kNoTensor}));
  return given;
}

void set_batch(Workload& workload, std::optional<std::int64_t> in_file,
               const WorkloadOptions& options) {
  workload.batch = options.batch.value_or(in_file.value_or(1));
  workload.microbatch = options.microbatch.value_or(workload.batch);
  workload.dtype = options.dtype.value_or(DType::fp32);
}

}  // namespace plimsoll
