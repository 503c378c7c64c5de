/// The file of a calibration: what was measured, and which of it a platform is fitted to.
///
///   calibration: my-v100
///   platform: v100-sxm2-16gb
///   fit:
///     - name: VGG-16
///       workload: {model: vgg16, batch: 128}
///       forward: {convolution: 198 ms, matmul: 3.6 ms}
///       backward: {convolution: 399 ms, matmul: 5.9 ms}
///       source: "layer by layer, with ..."
///   test:
///     - {name: ResNet-50, workload: {model: resnet50, batch: 256}, throughput: 367 samples/s,
///        source: ...}
///     - {name: mine, workload: {onnx: mine.onnx, batch: 8}, profile: mine.yaml, source: ...}
///
/// Times that a profiler took layer by layer hold a wait for the host, which a step does not have:
/// `layer_by_layer: true` beside them fits one wait a forward operator and one a backward operator,
/// of the profiler and not of the platform. `like: PLATFORM` begins with that platform's launch
/// overhead and shares of bandwidth, which are of the device whatever the number format.
///
/// What the host takes for an operator shows where it keeps the processor waiting, as with small
/// microbatches: `host_bound: true` beside such a step fits that to it, and nothing else.
///
/// Steps of several shapes, as sequences sorted by length make them, have one mean throughput:
///
///   mix: [{parts: 3, with: {sequence: 64}}, {parts: 1, with: {sequence: 512}}]
///
/// is the mean over four steps, of which three have the one length and one the other.
///
/// `policy: remat/blocks` says how a step was run that computes layers again; one that copies has
/// times that no coefficient changes. A workload may `accumulate`.
///
/// `layers: {conv2d_1: {forward: 3 ms, backward: 7 ms}}` gives times of layers one by one, which
/// tell more of how a time depends on a shape than their sums by class do. What a profiler gives no
/// time of its own it waits for in what runs next: `untimed` names such layers.
///
/// Which measurements are fitted and which only judge stands in the file, before anything is
/// fitted. docs/accuracy.md tells the rest.
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Fitted times are whole nanoseconds.
inline constexpr std::int64_t kPicosecondsPerNanosecond = 1'000;

/// Summed over the operators of each class.
using ClassTimes = std::array<std::optional<Time>, kOperatorClasses>;

/// One of the shapes of a mix of steps, and how many of its parts have it.
struct MixedShape {
  std::int64_t parts = 0;
  Node with;  ///< numbers of the workload, as in a scenario
};

/// What one layer took, where it was timed by itself.
struct LayerTimes {
  std::optional<Time> forward, backward;
};

/// Either the step or parts of it: of classes, or as a profile has them.
struct MeasurementSpec {
  Location where;
  std::string name;
  Node workload;  ///< as in a scenario
  std::optional<Time> step;
  std::optional<SampleRate> throughput;
  ClassTimes forward, backward;
  std::vector<std::pair<Located<std::string>, LayerTimes>> layers;
  std::optional<Located<std::string>> profile;
  std::optional<Node> policy;                 ///< that the step was run with; absent: `none`
  std::vector<MixedShape> mix;                ///< empty: all steps are as the workload says
  bool layer_by_layer = false;                ///< each layer was waited for
  bool host_bound = false;                    ///< the host kept the processor waiting
  bool other_device = false;                  ///< or other libraries, slower or faster throughout
  std::vector<Located<std::string>> without;  ///< layers that the times leave out
  /// Layers whose forward is in the time of what runs next, and whose backward is in none.
  std::vector<Located<std::string>> untimed;
  std::string source;

  /// Whether a whole step was measured.
  [[nodiscard]] bool is_step() const { return step || throughput; }
};

/// How the processor's libraries cut operators into pieces, which is known and not fitted.
struct KnownKernels {
  std::int64_t tile = 1;
  bool bias = false;
  bool additions = false;
  std::string source;
};

struct CalibrationSpec {
  Location where;
  std::string name;
  std::string about;
  Located<std::string> platform;
  std::optional<Located<std::string>> like;
  std::optional<Located<std::string>> on;  ///< default: the only processor
  std::optional<KnownKernels> kernels;     ///< default: those of the platform
  std::vector<MeasurementSpec> fit, test;
};

/// Reads one; what it names is read when it is fitted. Throws InputError with all that is wrong.
[[nodiscard]] CalibrationSpec read_calibration(const Node& document);

[[nodiscard]] std::string calibration_schema();

}  // namespace plimsoll
