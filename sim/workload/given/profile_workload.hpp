/// A training step as it was recorded on a machine: times, and storages with their sizes.
///
///   workload: net
///   batch: 8
///   profile:
///     version: 1
///     recorded: "PyTorch 1.13.1 on a CPU"
///     inputs: {x: 1 MiB}
///     parameters: {w: 4 KiB}
///     operators:
///       - name: conv
///         class: convolution
///         forward: {time: 1 ms, reads: [x, w], makes: {y: 2 MiB}, keeps: {mask: 1 KiB}}
///         backward: {time: 2 ms, reads: [y.gradient, x, w, mask], makes: {x.gradient: 1 MiB},
///                    gradients: [w], workspace: 1 KiB}
///
/// Everything is a storage and has one name; a view of one is that one. Operators stand in the
/// order in which their forwards ran; backwards run in reverse, as those of an autograd engine do.
///   - `makes`: what an operator leaves for others; of a forward, its values.
///   - `keeps`: what a forward leaves for backwards alone; no bare forward leaves it, unless others
///     than the backward of its operator read it.
///   - `updates`: what it changes in place, among what it reads.
///   - `gradients`: the parameters to whose gradients a backward adds. The first one makes the
///     buffer, of the parameter's size, which stays.
///   - `workspace`: what it needs while it runs beyond all that it leaves.
/// Gradients of values are storages like any other, so that one that is handed on, or added to in
/// place, is told apart from one that is copied. Each storage goes after its last reader. Inputs,
/// parameters and buffers are there even if nothing reads them: the first forward does, then.
///
/// Sizes and times hold for the recorded batch alone: it is one microbatch, whatever is asked.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/core/workload_options.hpp"
#include "workload/given/graph_workload.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// A forward or a backward.
struct RecordedStep {
  Time time;
  std::vector<Located<std::string>> reads, updates;
  NamedBytes makes;
  NamedBytes keeps;                             ///< of a forward
  std::vector<Located<std::string>> gradients;  ///< of a backward: parameters
  Bytes workspace;
};

struct RecordedOperator {
  Location where;
  std::string name;
  OperatorClass operator_class = OperatorClass::other;
  RecordedStep forward;
  std::optional<RecordedStep> backward;  ///< none where nothing before it is trained
};

struct ProfileSpec {
  Location where;
  std::string name;
  std::string recorded;  ///< where and how, for people
  NamedBytes inputs;
  NamedBytes parameters;
  NamedBytes buffers;  ///< resident, and not trained: running statistics
  std::vector<RecordedOperator> operators;
  std::optional<std::int64_t> batch;
  std::optional<Optimizer> optimizer;
};

/// The version of the format that this program reads.
inline constexpr std::int64_t kProfileVersion = 1;

/// How a profile is written. Reading checks that names are unique, that everything read was made
/// before, and that what is changed in place is read.
[[nodiscard]] Format<ProfileSpec> profile_format();

/// O((operators + reads) log storages). Throws InputError where a mini-batch of the size asked for
/// is not one microbatch of the recorded size, and where another dtype is asked for.
[[nodiscard]] Workload build(const ProfileSpec& profile, const WorkloadOptions& options);

}  // namespace plimsoll
