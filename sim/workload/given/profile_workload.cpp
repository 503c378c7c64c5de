#include "workload/given/profile_workload.hpp"

#include "workload/given/given_operators.hpp"

#include <map>
#include <set>
#include <string_view>

namespace plimsoll {
namespace {

class ProfileBuilder {
 public:
  ProfileBuilder(const ProfileSpec& profile, Optimizer optimizer)
      : profile_(profile), builder_(profile.name) {
    for (const RecordedOperator& op : profile.operators) {
      for (const Located<std::string>& read : op.forward.reads) read_.insert(read.value);
      if (op.backward)
        for (const Located<std::string>& read : op.backward->reads)
          backward_readers_[read.value].insert(&op);
    }
    add_residents(optimizer);
  }

  Workload build() {
    std::vector<OperatorId> forwards{add_forward(profile_.operators.front(), unread())};
    for (std::size_t i = 1; i < profile_.operators.size(); ++i)
      forwards.push_back(add_forward(profile_.operators[i], {}));
    for (std::size_t i = forwards.size(); i-- > 0;)
      if (profile_.operators[i].backward) add_backward(profile_.operators[i], forwards[i]);
    return builder_.freeze();
  }

 private:
  void add_residents(Optimizer optimizer) {
    for (const auto& [input, bytes] : profile_.inputs)
      add(input.value, bytes, TensorClass::activation, Lifetime::input);
    for (const auto& [buffer, bytes] : profile_.buffers)
      add(buffer.value, bytes, TensorClass::activation, Lifetime::resident);
    for (const auto& [parameter, bytes] : profile_.parameters)
      parameters_[parameter.value] = add_parameters(builder_, parameter.value, bytes, optimizer);
  }

  TensorId add(const std::string& name, Bytes bytes, TensorClass tensor_class, Lifetime lifetime) {
    return storages_[name] = builder_.add(Tensor{name, bytes, tensor_class, lifetime, kNoTensor});
  }

  /// What is there throughout though nothing reads it: placed with the first forward.
  [[nodiscard]] std::vector<TensorId> unread() const {
    std::vector<TensorId> tensors;
    const auto add_unread = [&](const std::string& name, const std::vector<TensorId>& ids) {
      if (!read_.contains(name) && !backward_readers_.contains(name))
        tensors.insert(tensors.end(), ids.begin(), ids.end());
    };
    for (const auto& [name, id] : storages_) add_unread(name, {id});
    for (const auto& [name, given] : parameters_) add_unread(name, given.resident);
    return tensors;
  }

  /// Whether others than the backward of the operator read what it keeps. Then no form of its run
  /// does without: only what runs before that backward makes it again is for it alone.
  [[nodiscard]] bool is_shared(const RecordedOperator& op, const std::string& kept) const {
    const auto readers = backward_readers_.find(kept);
    return read_.contains(kept) ||
           (readers != backward_readers_.end() && readers->second != std::set{&op});
  }

  OperatorId add_forward(const RecordedOperator& op, const std::vector<TensorId>& unread) {
    OperatorSpec spec = step(op, op.forward, ".forward");
    spec.reads.insert(spec.reads.end(), unread.begin(), unread.end());
    for (const auto& [value, bytes] : op.forward.makes)
      spec.bare.push_back(add(
          value.value, bytes,
          backward_readers_.contains(value.value) ? TensorClass::saved : TensorClass::activation,
          Lifetime::step));
    spec.kept = spec.bare;
    for (const auto& [extra, bytes] : op.forward.keeps) {
      spec.kept.push_back(add(extra.value, bytes, TensorClass::saved, Lifetime::step));
      if (is_shared(op, extra.value)) spec.bare.push_back(spec.kept.back());
    }
    return builder_.add(std::move(spec));
  }

  void add_backward(const RecordedOperator& op, OperatorId forward) {
    OperatorSpec spec = step(op, *op.backward, ".backward");
    spec.phase = Phase::backward;
    spec.forward = forward;
    for (const auto& [gradient, bytes] : op.backward->makes)
      spec.kept.push_back(add(gradient.value, bytes, TensorClass::gradient, Lifetime::step));
    for (const Located<std::string>& parameter : op.backward->gradients)
      if (const TensorId gradient = parameters_.at(parameter.value).gradient; gradient != kNoTensor)
        spec.kept.push_back(gradient);
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  /// What forwards and backwards have in common.
  [[nodiscard]] OperatorSpec step(const RecordedOperator& op, const RecordedStep& recorded,
                                  const char* suffix) const {
    OperatorSpec spec;
    spec.name = op.name + suffix;
    spec.operator_class = op.operator_class;
    spec.given_time = recorded.time;
    spec.workspace = recorded.workspace;
    for (const Located<std::string>& read : recorded.reads) {
      const auto parameter = parameters_.find(read.value);
      if (parameter == parameters_.end())
        spec.reads.push_back(storages_.at(read.value));
      else
        spec.reads.insert(spec.reads.end(), parameter->second.resident.begin(),
                          parameter->second.resident.end());
    }
    for (const Located<std::string>& update : recorded.updates)
      spec.updates.push_back(storages_.at(update.value));
    return spec;
  }

  const ProfileSpec& profile_;
  WorkloadBuilder builder_;
  std::set<std::string_view> read_;  ///< by forwards
  /// By storage, the operators whose backwards read it.
  std::map<std::string_view, std::set<const RecordedOperator*>> backward_readers_;
  std::map<std::string, TensorId, std::less<>> storages_;
  std::map<std::string, GivenParameters, std::less<>> parameters_;
};

[[noreturn]] void refuse(const ProfileSpec& profile, const std::string& message) {
  refuse(profile.where, message);
}

void check_options(const ProfileSpec& profile, const WorkloadOptions& options) {
  const std::int64_t recorded = profile.batch.value_or(1);
  const std::int64_t asked = options.microbatch.value_or(options.batch.value_or(recorded));
  if (asked != recorded)
    refuse(profile, "profile `" + profile.name + "` was recorded with " + std::to_string(recorded) +
                        " samples, which are one microbatch; found " + std::to_string(asked) +
                        "; record one of that size");
  if (options.dtype)
    refuse(profile, "a profile takes no `dtype`: its sizes and times are as recorded");
}

}  // namespace

Workload build(const ProfileSpec& profile, const WorkloadOptions& options) {
  check_options(profile, options);
  const Optimizer optimizer =
      options.optimizer.value_or(profile.optimizer.value_or(Optimizer::none));
  Workload workload = ProfileBuilder(profile, optimizer).build();
  set_batch(workload, profile.batch, options);
  return workload;
}

}  // namespace plimsoll
