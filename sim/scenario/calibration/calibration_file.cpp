#include "scenario/calibration/calibration_file.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Each is built and timed.
constexpr std::size_t kMaxMeasurements = 1000;
constexpr std::size_t kMaxShapes = 100;
constexpr std::int64_t kMaxParts = 1'000'000'000'000;

Format<ClassTimes> class_times_format(const std::string& title) {
  Record<ClassTimes> record(title,
                            "Times of classes of operators, each summed over its operators.");
  for (std::size_t i = 0; i < kOperatorClasses; ++i)
    record.element(to_text(static_cast<OperatorClass>(i)), i, quantity<Time>(),
                   "all operators of the class together");
  return record.format();
}

bool is_zero(const std::optional<Time>& time) {
  return time && *time == Time{};
}

bool gives_classes(const MeasurementSpec& it) {
  const auto given = [](const ClassTimes& times) {
    return std::ranges::any_of(times, [](const auto& time) { return time.has_value(); });
  };
  return given(it.forward) || given(it.backward);
}

void check_layer(const LayerTimes& it, const Node& node, Diagnostics& diagnostics) {
  if (!it.forward && !it.backward)
    diagnostics.error(node.where(), "a layer without a time; expected `forward` or `backward`");
  if (is_zero(it.forward) || is_zero(it.backward))
    diagnostics.error(node.where(), "a measured time of 0 s; an error against it has no size");
}

Format<LayerTimes> layer_times_format() {
  using L = LayerTimes;
  return Record<L>("layer", "What one layer took.")
      .optional("forward", &L::forward, quantity<Time>(), "its forward")
      .optional("backward", &L::backward, quantity<Time>(), "its backward")
      .check({"forward", "backward"}, check_layer)
      .format();
}

void check_measured(MeasurementSpec& it, const Node& node, Diagnostics& diagnostics) {
  const int ways = (it.step ? 1 : 0) + (it.throughput ? 1 : 0) + (it.profile ? 1 : 0) +
                   (gives_classes(it) ? 1 : 0) + (it.layers.empty() ? 0 : 1);
  if (ways != 1)
    diagnostics.error(node.where(),
                      ways == 0 ? "nothing was measured; expected `step`, `throughput`, `profile`, "
                                  "`layers`, or times of classes in `forward` and `backward`"
                                : "measured in several ways; expected one of `step`, `throughput`, "
                                  "`profile`, `layers`, and times of classes in `forward` and "
                                  "`backward`");
  if (is_zero(it.step) || std::ranges::any_of(it.forward, is_zero) ||
      std::ranges::any_of(it.backward, is_zero))
    diagnostics.error(node.where(), "a measured time of 0 s; an error against it has no size");
  if (it.throughput && *it.throughput == SampleRate{})
    diagnostics.error(node.where(), "a throughput of no samples/s is none");
  if (!it.mix.empty() && !it.is_step())
    diagnostics.error(node.find("mix")->where(),
                      "a mix is of whole steps; expected `step` or `throughput` beside it");
  if (it.policy && !it.is_step())
    diagnostics.error(node.find("policy")->where(),
                      "a policy is of a whole step; expected `step` or `throughput` beside it");
  if (it.layer_by_layer && it.is_step())
    diagnostics.error(node.find("layer_by_layer")->where(),
                      "a whole step is not timed layer by layer; expected times of classes, or a "
                      "`profile`");
  if (it.host_bound && !it.is_step())
    diagnostics.error(node.find("host_bound")->where(),
                      "`host_bound` needs a whole step; expected `step` or `throughput` beside it, "
                      "found times of parts");
  if (it.host_bound && it.other_device)
    diagnostics.error(node.find("other_device")->where(),
                      "what waits for its host tells nothing of another device; expected one of "
                      "`host_bound` and `other_device`");
  if (!it.untimed.empty() && !gives_classes(it) && !it.profile)
    diagnostics.error(node.find("untimed")->where(),
                      "what has no time of its own is in that of a class; expected times of "
                      "classes, or a `profile`");
}

void check_mapping(const Node& node, Diagnostics& diagnostics) {
  if (!node.is_mapping())
    diagnostics.error(node.where(),
                      "expected a mapping such as `{sequence: 64}`, found " + node.describe());
}

Format<MixedShape> mixed_shape_format() {
  using M = MixedShape;
  return Record<M>("shape", "Steps of one shape among those whose mean was measured.")
      .required("parts", &M::parts, integer(1, kMaxParts), "how many of all parts of the mix")
      .required("with", &M::with, checked(raw(), check_mapping), "numbers of the workload")
      .format();
}

Format<MeasurementSpec> measurement_format() {
  using M = MeasurementSpec;
  return Record<M>("measurement", "What was measured of a training step, or of parts of it.")
      .where(&M::where)
      .required("name", &M::name, text(), "for the report")
      .required("workload", &M::workload, raw(), "a network, as in a scenario")
      .optional("step", &M::step, quantity<Time>(), "of the whole step")
      .optional("throughput", &M::throughput, quantity<SampleRate>(), "of whole steps in a row")
      .optional("forward", &M::forward, class_times_format("forward"), "times by class")
      .optional("backward", &M::backward, class_times_format("backward"), "times by class")
      .optional("layers", &M::layers, map_of(layer_times_format()), "times by layer")
      .optional("profile", &M::profile, located(text()),
                "a profile of this network: its times, summed by class")
      .optional("policy", &M::policy, raw(),
                "what the step was run with, as in a scenario: one that only computes (none)")
      .optional("mix", &M::mix, list_of(mixed_shape_format(), 1, kMaxShapes),
                "shapes of the steps whose mean was measured; default: as the workload says")
      .optional("layer_by_layer", &M::layer_by_layer, boolean(),
                "each layer was waited for: a wait for the host is fitted beside (false)")
      .optional("host_bound", &M::host_bound, boolean(),
                "the host kept the processor waiting: what it takes for an operator is fitted to "
                "this step, and nothing else (false)")
      .optional("other_device", &M::other_device, boolean(),
                "of another device of this kind, or other libraries: by how much those are slower "
                "throughout is fitted beside (false)")
      .optional("without", &M::without, list_of(located(text()), 0, kMaxMeasurements),
                "layers that the times leave out")
      .optional("untimed", &M::untimed, list_of(located(text()), 0, kMaxMeasurements),
                "layers whose forward is in the time of what runs next, and whose backward in none")
      .required("source", &M::source, text(), "who measured it, and how")
      .check({"step", "throughput", "forward", "backward", "layers", "profile", "mix", "policy",
              "untimed", "layer_by_layer", "host_bound", "other_device"},
             check_measured)
      .format();
}

Format<KnownKernels> kernels_format() {
  using K = KnownKernels;
  constexpr std::int64_t kMost = 65'536;
  return Record<K>("kernels", "How operators are cut into pieces, as in a platform.")
      .optional("tile", &K::tile, integer(1, kMost), "(1)")
      .optional("bias", &K::bias, boolean(), "(false)")
      .optional("additions", &K::additions, boolean(), "(false)")
      .required("source", &K::source, text(), "where that is from")
      .format();
}

/// How much slower another device is both kinds of measurements tell together.
void check_other_devices(const CalibrationSpec& spec, Diagnostics& diagnostics) {
  const auto is_fitted = [&](bool other) {
    return std::ranges::any_of(spec.fit, [&](const MeasurementSpec& it) {
      return it.other_device == other && !it.host_bound;
    });
  };
  const bool is_told = is_fitted(true) && is_fitted(false);
  const bool waits = std::ranges::any_of(spec.fit, &MeasurementSpec::host_bound);
  for (const auto* list : {&spec.fit, &spec.test})
    for (const MeasurementSpec& it : *list) {
      if (it.other_device && !is_told)
        diagnostics.error(it.where,
                          fmt::format("measurement `{}` is of another device, and nothing "
                                      "tells how much slower that is; expected one of it "
                                      "and one of the platform's own under `fit`",
                                      it.name));
      if (it.other_device && it.is_step() && waits)
        diagnostics.error(it.where,
                          fmt::format("measurement `{}` is a step of another device, whose host is "
                                      "not that of what is `host_bound`; expected times of parts",
                                      it.name));
    }
}

void check_fitted(const CalibrationSpec& spec, const Node& node, Diagnostics& diagnostics) {
  for (const MeasurementSpec& it : spec.test)
    if (it.host_bound)
      diagnostics.error(it.where, fmt::format("`host_bound` is for what is under `fit`, and "
                                              "measurement `{}` only judges",
                                              it.name));
  check_other_devices(spec, diagnostics);
  if (std::ranges::all_of(spec.fit, &MeasurementSpec::host_bound))
    diagnostics.error(node.find("fit")->where(),
                      "all that is fitted waits for the host, which tells nothing of the "
                      "processor; expected a measurement that is not `host_bound`");
}

Format<CalibrationSpec> calibration_format() {
  using C = CalibrationSpec;
  return Record<C>("calibration", "Measurements that a platform is fitted to and judged by.")
      .where(&C::where)
      .required("calibration", &C::name, name(), "its name, and that of the platform that it makes")
      .optional("about", &C::about, text(), "what people should know")
      .required("platform", &C::platform, located(text()), "a name or a path; the start of the fit")
      .optional("like", &C::like, located(text()),
                "a platform whose launch overhead and shares of bandwidth the fit begins with")
      .optional("on", &C::on, located(text()), "the processor; default: the only one")
      .optional("kernels", &C::kernels, kernels_format(),
                "what is known of how operators are cut into pieces; default: as in the platform")
      .required("fit", &C::fit, list_of(measurement_format(), 1, kMaxMeasurements),
                "what the coefficients are fitted to")
      .optional("test", &C::test, list_of(measurement_format(), 0, kMaxMeasurements),
                "what only judges them")
      .check({"fit", "test"}, check_fitted)
      .format();
}

}  // namespace

CalibrationSpec read_calibration(const Node& document) {
  Diagnostics diagnostics;
  auto spec = calibration_format().read(document, diagnostics);
  diagnostics.throw_if_errors();
  return std::move(*spec);
}

std::string calibration_schema() {
  return json_schema(calibration_format().shape, "Plimsoll calibration");
}

}  // namespace plimsoll
