// Calibration through its file: what is fitted, what judges, what is refused, what is written.
#include "report/calibration/calibration_json.hpp"
#include "report/calibration/calibration_text.hpp"
#include "scenario/calibration/calibrated_platform.hpp"
#include "scenario/calibration/calibration_rows.hpp"
#include "scenario/document/search_path.hpp"
#include "support/oracles.hpp"
#include "support/temporary_folder.hpp"

#include <map>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Catch::Matchers::Contains;
using test::json;

/// One linear layer of 4 x 8 without bias, 1,000 samples, on a platform with 64 kFLOP/s: 2 * 4 * 8
/// FLOP a sample are 1 s at full efficiency, the gradient of the weight (the input has none)
/// another.
constexpr const char* kPlatform =
    "platform: board\nmemories: {ram: {capacity: 1 GiB}}\n"
    "processors: {cpu: {memory: ram, compute: {fp32: 64 kFLOP/s}}}\n";

std::string samples(int batch) {
  return fmt::format(
      "{{workload: one, batch: {}, input: [4], loss: none, layers: [{{linear: {{features: 8, bias: "
      "false}}}}]}}",
      batch);
}

const std::string kWorkload = samples(1000);

class Files {
 public:
  Files() {
    write("board.yaml", kPlatform);
    write("fast.yaml",
          "extends: board\nplatform: fast\nprocessors: {cpu: {compute: {fp32: 64 MFLOP/s}}}\n");
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }

  [[nodiscard]] Calibration calibrated(const std::string& text) const {
    return calibrate(read_calibration(parse_document(text, "fit.yaml")), folder_.path());
  }

  [[nodiscard]] std::string error_of(const std::string& text) const {
    try {
      (void)calibrated(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

std::string document(const std::string& fit, const std::string& test = "",
                     const std::string& platform = "board") {
  return "calibration: fitted\nplatform: " + platform + "\nfit:\n" + fit +
         (test.empty() ? "" : "test:\n" + test);
}

std::string measured(const std::string& what, const std::string& workload = kWorkload) {
  return "  - {name: it, source: a clock, workload: " + workload + ", " + what + "}\n";
}

}  // namespace

TEST_CASE("a calibration finds the efficiency between two measured times") {
  // 2 s and 1.5 s instead of 1 s at full efficiency. With x = 1 / efficiency the least of
  // log^2(x / 2) + log^2(x / 1.5) is at sqrt(2 * 1.5) = 1.732051; the pull to x = 1 takes 1e-5 of
  // it. Its inverse is 57.74 %, and 57.74 % of 64 kFLOP/s are 36,953 FLOP/s: 64,000 FLOP take
  // 1.731930 s. The overhead of one operator would have to be seconds to matter.
  const Files files;
  const Calibration it = files.calibrated(
      document(measured("forward: {matmul: 2 s}") + measured("forward: {matmul: 1500 ms}"),
               measured("step: 4 s")));
  const json result = json::parse(calibration_json(it));
  REQUIRE(result.at("coefficients").size() == 2);
  CHECK(result.at("coefficients").at(0) ==
        json({{"name", "efficiency.matmul.compute"}, {"before", 1.0}, {"fitted", 0.5774}}));
  CHECK(result.at("coefficients").at(1).at("fitted") == 0.0);
  REQUIRE(result.at("rows").size() == 3);
  const json& fit = result.at("rows").at(0);
  CHECK(fit.at("use") == "fit");
  CHECK(fit.at("part") == "forward matmul");
  CHECK(fit.at("before_s") == 1.0);
  CHECK(fit.at("error_before") == -0.5);
  CHECK(fit.at("fitted_s").get<double>() == Approx(1.731930).epsilon(1e-6));
  CHECK(fit.at("error") == -0.134035);
  CHECK(result.at("rows").at(1).at("error") == 0.15462);
  // The step is a forward and a backward alike.
  const json& step = result.at("rows").at(2);
  CHECK(step.at("use") == "test");
  CHECK_FALSE(step.contains("part"));
  CHECK(step.at("before_s") == 2.0);
  CHECK(step.at("error") == -0.134035);
  // Of the errors 0.5 and 0.333333, and 0.134035 and 0.15462; the 95th percentile of two is the
  // greater.
  CHECK(result.at("errors").at("fit") == json({{"rows", 2},
                                               {"mean_before", 0.416667},
                                               {"p95_before", 0.5},
                                               {"mean", 0.144328},
                                               {"p95", 0.15462}}));
  CHECK(result.at("errors").at("test").at("rows") == 1);
}

TEST_CASE("a calibration leaves a platform that is right as it is") {
  // Measured is what the platform says: nothing pulls, and every error is 0.
  Files files;
  files.write("right.yaml",
              "extends: board\nplatform: right\nprocessors: {cpu: {efficiency: {matmul: 0.25}, "
              "launch_overhead: 3 us}}\n");
  const Calibration it = files.calibrated(document(measured("step: 8000006 us"), "", "right"));
  CHECK(it.fitted.efficiency[0].compute == Ratio{250'000'000});
  CHECK(it.fitted.launch_overhead == Time{3'000'000});
  CHECK(summary_of(it, false, Moment::after).p95 == 0);
  CHECK_THAT(calibration_text(it, {}), Contains("Nothing judges the fit"));
}

TEST_CASE("a calibration tells arithmetic from traffic where measured times do") {
  // Forward of n samples: a 4 x 8 product 64 n FLOP and 4 (4 n + 8 n + 32) B, a 1 x 1 product 2 n
  // FLOP and 4 (n + n + 1) B. At 64 kFLOP/s and 48,128 B/s, 1,000 samples are 1 s of arithmetic and
  // 1 s of traffic, and 31.25 ms and 166.306 ms. At half and a quarter of that they take
  // 2 s + 4 s = 6 s, and 62.5 ms + 665.226 ms = 727.726 ms.
  Files files;
  files.write("slow.yaml",
              "extends: board\nplatform: slow\nmemories: {ram: {bandwidth: 48128 B/s}}\n");
  const std::string small =
      "{workload: small, batch: 1000, input: [1], loss: none, layers: [{linear: {features: 1, "
      "bias: "
      "false}}]}";
  const Calibration it = files.calibrated(
      document(measured("forward: {matmul: 6 s}") + measured("forward: {matmul: 727726 us}", small),
               "", "slow"));
  CHECK(as_fraction(*it.fitted.efficiency[0].compute) == Approx(0.5).margin(0.001));
  CHECK(as_fraction(*it.fitted.efficiency[0].bandwidth) == Approx(0.25).margin(0.001));
  CHECK(summary_of(it, false, Moment::after).p95 < 1000);
  // A platform like it has the traffic, not the arithmetic.
  files.write("fitted.yaml", calibrated_platform(it, files.path(), files.path() / "fitted.yaml"));
  const Calibration next = files.calibrated(
      "like: fitted\n" + document(measured("forward: {matmul: 4 s}"), "", "board"));
  CHECK_FALSE(next.fitted.efficiency[0].bandwidth);
  CHECK(as_fraction(next.after.efficiency[0].bandwidth()) == Approx(0.25).margin(0.001));
  CHECK(*next.fitted.efficiency[0].compute == Ratio{250'000'000});
}

TEST_CASE("what a profiler waits for each layer is none of the platform's") {
  // At 64 MFLOP/s the product of 1,000 samples takes 1 ms, of 2,000 samples 2 ms; measured is
  // 0.2 ms more. A launch of 0.2 ms, at 1 us a launch in the last term, would cost more than a
  // wait.
  Files files;
  const std::string twice = samples(2000);
  const std::string layers = ", layer_by_layer: true";
  const Calibration it = files.calibrated(
      document(measured("forward: {matmul: 1200 us}, backward: {matmul: 1 ms}" + layers) +
                   measured("forward: {matmul: 2200 us}, backward: {matmul: 2 ms}" + layers, twice),
               measured("step: 2 ms") + measured("forward: {matmul: 1200 us}" + layers), "fast"));
  REQUIRE(it.fitted.waits);
  CHECK(in_seconds((*it.fitted.waits)[0]) == Approx(200e-6).epsilon(0.02));
  CHECK(in_seconds((*it.fitted.waits)[1]) == Approx(0).margin(5e-6));
  CHECK(in_seconds(it.fitted.launch_overhead) == Approx(0).margin(1e-6));
  // A step waits for none of its layers.
  CHECK(std::abs(error_of(it.rows[4], Moment::after)) < 5'000);
  CHECK(std::abs(error_of(it.rows[5], Moment::after)) < 5'000);
  CHECK(error_of(it.rows[5], Moment::before) == -166'667);
  CHECK_THAT(files.error_of(document(measured("step: 1 s" + layers))),
             Contains("fit.yaml:4:") && Contains("a whole step is not timed layer by layer"));
}

TEST_CASE("a step that waits for the host tells what an operator costs it, and nothing else") {
  // At 64 MFLOP/s a product of 1,000 samples takes 1 ms forward and 1 ms backward, of 10 samples 10
  // us each. Measured are 110 us: two issues of h, then the backward, 2 h + 10 us = 110 us.
  Files files;
  const std::string few = samples(10);
  const std::string bound = ", host_bound: true";
  const Calibration it = files.calibrated(document(
      measured("step: 2 ms") + measured("step: 110 us" + bound, few),
      measured("throughput: 90909 samples/s", few) + measured("forward: {matmul: 10 us}", few),
      "fast"));
  REQUIRE(it.fitted.host_overhead);
  CHECK(*it.fitted.host_overhead == Time{50'000'000});
  CHECK(error_of(it.rows[1], Moment::before) == -818'182);
  CHECK(error_of(it.rows[1], Moment::after) == 0);
  CHECK(std::abs(error_of(it.rows[2], Moment::after)) < 10);
  // A class of operators is timed without the wait.
  CHECK(it.rows[3].part == "forward matmul");
  CHECK(it.rows[3].after < Time{11'000'000});
  // The other step waits for its first operator alone, which is no part of its fit: at 102.56 % of
  // the rate, which is the most, it would take 1.95 ms.
  CHECK(it.rows[0].after == Time{2'050'000'000});
  CHECK_THAT(calibration_text(it, {}), Contains("host overhead"));
  const json coefficients = json::parse(calibration_json(it)).at("coefficients");
  CHECK(coefficients.back() ==
        json({{"name", "host_overhead_s"}, {"before", 0.0}, {"fitted", 50e-6}}));
  CHECK_THAT(calibrated_platform(it, files.path(), files.path() / "fitted.yaml"),
             Contains("    host_overhead: 50.000 us\n") &&
                 Contains("processors.cpu.host_overhead: *fit\n"));
  // Beside 2.05 ms it is the 2 ms that are fitted.
  const Calibration other = files.calibrated(
      document(measured("step: 4050 us") + measured("step: 120 us" + bound, few), "", "fast"));
  CHECK(other.fitted.host_overhead == Time{50'000'000});
  CHECK(*other.fitted.efficiency[0].compute == Ratio{500'000'000});
  CHECK(error_of(other.rows[0], Moment::after) == 0);
  // A platform's own overhead is taken off, too.
  files.write("hosted.yaml",
              calibrated_platform(other, files.path(), files.path() / "hosted.yaml"));
  const Calibration again = files.calibrated(document(measured("step: 120 us", few), "", "hosted"));
  CHECK_FALSE(again.fitted.host_overhead);
  CHECK(again.after.host_overhead == Time{50'000'000});
  // 1 ns of 120 us.
  CHECK(std::abs(error_of(again.rows[0], Moment::before)) < 10);
  CHECK(std::abs(error_of(again.rows[0], Moment::after)) < 10);
}

TEST_CASE("a host-bound measurement is a step, fitted beside others") {
  const Files files;
  const std::string bound = ", host_bound: true";
  CHECK_THAT(files.error_of(document(measured("forward: {matmul: 1 s}" + bound))),
             Contains("fit.yaml:4:") && Contains("`host_bound` needs a whole step"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s"), measured("step: 1 s" + bound))),
             Contains("fit.yaml:6:") && Contains("`host_bound` is for what is under `fit`"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s" + bound))),
             Contains("all that is fitted waits for the host"));
  CHECK_THAT(files.error_of(document(measured("step: 4 s") + measured("step: 5 us" + bound))),
             Contains("fit.yaml:5:") &&
                 Contains("measurement `it` is `host_bound`, but took 5 us, and its operators "
                          "alone take the processor 4 s"));
  CHECK_THAT(files.error_of(document(measured("step: 4 s") + measured("step: 10 h" + bound))),
             Contains("not even 100 s for each operator"));
}

TEST_CASE("a class that takes less than a hundredth of every fitted time is not touched") {
  // 6,400 FLOP of a product and 8 of a ReLU a sample, each way; with 64 and 8 it is a ninth.
  const Files files;
  for (const auto& [inputs, coefficients] : {std::pair(400, 2), std::pair(4, 3)}) {
    const std::string workload = fmt::format(
        "{{workload: net, batch: 1000, input: [{}], loss: none, layers: [{{linear: {{features: 8, "
        "bias: false}}}}, relu]}}",
        inputs);
    const Calibration it = files.calibrated(document(measured("step: 400 s", workload)));
    CAPTURE(inputs);
    CHECK(json::parse(calibration_json(it)).at("coefficients").size() ==
          static_cast<std::size_t>(coefficients));
    CHECK(it.fitted.efficiency[static_cast<std::size_t>(OperatorClass::elementwise)].any() ==
          (coefficients == 3));
  }
}

TEST_CASE("a throughput is that of steps in a row, and layers can be left out") {
  const Files files;
  // 4,000 samples at 2,000 samples/s are 2 s; 64 FLOP a sample each way take 8 s before.
  const std::string four =
      "{workload: two, input: [4], loss: none, batch: 4000, layers: [{linear: {features: 8, bias: "
      "false, name: first}}, {linear: {features: 8, bias: false, name: last}}]}";
  const Calibration it = files.calibrated(document(measured("throughput: 2000 samples/s", four) +
                                                   measured("step: 1 s, without: [last]", four)));
  REQUIRE(it.rows.size() == 2);
  CHECK(it.rows[0].measured == Time{2'000'000'000'000});
  CHECK(it.rows[1].before == Time{8'000'000'000'000});
  // The other: forward 2 x 8 x 8 FLOP a sample are 8 s, and as much for each of its two gradients.
  CHECK(it.rows[0].before - it.rows[1].before == Time{24'000'000'000'000});
}

TEST_CASE("the step of a mix is the mean over its shapes, each as often as it was") {
  // Forward and backward of n inputs are 2 n x 8 FLOP a sample each, 1,000 samples at 64 kFLOP/s:
  // 0.5 n s. Three steps of 4 inputs and one of 8 take 2 s, 2 s, 2 s and 4 s: 2.5 s. At half the
  // rate 5 s; that is found from the mix, and judges its shapes one by one.
  const Files files;
  const std::string sized =
      "{workload: one, batch: 1000, with: {inputs: 100}, input: [inputs], loss: none, layers: "
      "[{linear: {features: 8, bias: false}}]}";
  const std::string mix = ", mix: [{parts: 3, with: {inputs: 4}}, {parts: 1, with: {inputs: 8}}]";
  const Calibration it = files.calibrated(
      document(measured("step: 5 s" + mix, sized),
               measured("throughput: 200 samples/s" + mix, sized) +
                   measured("step: 8 s, mix: [{parts: 7, with: {inputs: 8}}]", sized)));
  REQUIRE(it.rows.size() == 3);
  CHECK(it.rows[0].before == Time{2'500'000'000'000});
  CHECK(*it.fitted.efficiency[0].compute == Ratio{500'000'000});
  CHECK(it.rows[1].measured == it.rows[0].measured);
  CHECK(error_of(it.rows[1], Moment::after) == 0);
  CHECK(error_of(it.rows[2], Moment::after) == 0);
  // A workload by its name takes other numbers, too.
  const Calibration named = files.calibrated(document(
      measured("step: 1 s, mix: [{parts: 1, with: {sequence: 64}}]", "bert-base"), "", "board"));
  const Calibration same = files.calibrated(
      document(measured("step: 1 s", "{model: bert-base, with: {sequence: 64}}"), "", "board"));
  CHECK(named.rows[0].before == same.rows[0].before);
}

TEST_CASE("a step has the operators that its policy runs, as often as it runs them") {
  // Products of 4 x 8 and 8 x 8, 1,000 samples at 64 kFLOP/s: 1 s and 2 s; backwards of 4 s, with
  // two gradients, and 1 s. The second backward reads what the first forward made, which runs
  // again.
  Files files;
  files.write("two.yaml",
              "workload: two\ninput: [4]\nloss: none\nlayers:\n"
              "  - linear: {features: 8, bias: false}\n  - linear: {features: 8, bias: false}\n");
  const std::string once = "{model: two, batch: 1000}";
  const std::string again =
      ", policy: {name: remat/blocks, blocks: [{from: linear_1, to: linear_2}]}";
  const Calibration it =
      files.calibrated(document(measured("step: 18 s" + again, once),
                                measured("step: 16 s", once) +
                                    measured("throughput: 100 samples/s" + again,
                                             "{model: two, batch: 2000, accumulate: 2}") +
                                    measured("step: 10 s, without: [linear_1]" + again, once)));
  REQUIRE(it.rows.size() == 4);
  CHECK(it.rows[0].before == Time{9'000'000'000'000});
  CHECK(*it.fitted.efficiency[0].compute == Ratio{500'000'000});
  CHECK(error_of(it.rows[1], Moment::after) == 0);
  // Two microbatches.
  CHECK(it.rows[2].measured == Time{20'000'000'000'000});
  CHECK(it.rows[2].before == Time{18'000'000'000'000});
  CHECK(it.rows[3].before == Time{6'000'000'000'000});
}

TEST_CASE("a step is run with one policy, which only computes") {
  Files files;
  const auto error_with = [&](const std::string& policy, const char* platform = "board") {
    return files.error_of(document(measured("step: 1 s, policy: " + policy), "", platform));
  };
  CHECK_THAT(files.error_of(document(measured("forward: {matmul: 1 s}, policy: none"))),
             Contains("a policy is of a whole step; expected `step` or `throughput` beside it"));
  CHECK_THAT(error_with("[none, none]"), Contains("a step is run with one policy, found a list"));
  CHECK_THAT(error_with("remat/blokcs"), Contains("fit.yaml:4:") && Contains("`remat/blocks`"));
  CHECK_THAT(error_with("{name: remat/rotor, budget: 1 B}"),
             Contains("policy `remat/rotor` has no plan: "));
  files.write(
      "linked.yaml",
      "extends: board\nplatform: linked\nmemories: {ram: {capacity: 1 GiB}, dram: {capacity: "
      "1 GiB}}\nlinks: {pcie: {between: [ram, dram], bandwidth: 1 GB/s}}\n");
  CHECK_THAT(error_with("offload/save-on-cpu", "linked"),
             Contains("policy `offload/save-on-cpu` does more than compute on `cpu`"));
  CHECK_THAT(files.error_of(document(
                 measured("forward: {matmul: 1 s}", "{model: lenet, batch: 2, accumulate: 2}"))),
             Contains("`accumulate` is of whole steps"));
}

TEST_CASE("layers are rows of their own") {
  // Products of 4 x 8 and 8 x 8, 1,000 samples at 64 kFLOP/s: 1 s and 2 s, twice that the backward
  // of the second, which has two gradients. At half the rate 2 s, 4 s and 8 s.
  const Files files;
  const std::string two =
      "{workload: two, input: [4], loss: none, batch: 1000, layers: [{linear: {features: 8, bias: "
      "false, name: first}}, {linear: {features: 8, bias: false, name: last}}]}";
  const Calibration it = files.calibrated(
      document(measured("layers: {first: {forward: 2 s}, last: {backward: 8 s}}", two),
               measured("layers: {last: {forward: 4 s}}", two)));
  REQUIRE(it.rows.size() == 3);
  CHECK(it.rows[0].part == "forward");
  CHECK(it.rows[0].layer == "first");
  CHECK(it.rows[0].before == Time{1'000'000'000'000});
  CHECK(it.rows[1].part == "backward");
  CHECK(it.rows[1].before == Time{4'000'000'000'000});
  CHECK(*it.fitted.efficiency[0].compute == Ratio{500'000'000});
  CHECK(error_of(it.rows[2], Moment::after) == 0);
  CHECK(json::parse(calibration_json(it)).at("rows").at(1).at("layer") == "last");
  CHECK_THAT(calibration_text(it, {}), Contains("backward of last"));
  CHECK_THAT(files.error_of(document(measured("layers: {frist: {forward: 2 s}}", two))),
             Contains("has no layer `frist`; did you mean `first`?"));
  CHECK_THAT(files.error_of(document(measured("layers: {first: {}}", two))),
             Contains("a layer without a time"));
  CHECK_THAT(files.error_of(document(measured("layers: {first: {forward: 0 s}}", two))),
             Contains("a measured time of 0 s"));
  CHECK_THAT(files.error_of(document(measured("layers: {nll_loss: {backward: 1 s}}",
                                              "{workload: n, input: [4], loss: cross-entropy, "
                                              "layers: [softmax]}"))),
             Contains("fit.yaml"));
}

TEST_CASE("what has no time of its own is in that of what runs next") {
  // A ReLU of 8,000 values is 8,000 FLOP, 0.125 s, before a product of 8 x 8, 2 s. The product was
  // timed with it: 2.125 s; nothing else is left, and no share is.
  const Files files;
  const std::string net =
      "{workload: net, input: [4], loss: none, batch: 1000, layers: [{linear: {features: 8, bias: "
      "false, name: first}}, {relu: {name: r}}, {linear: {features: 8, bias: false, name: last}}]}";
  const Calibration it = files.calibrated(
      document(measured("forward: {matmul: 2125 ms}, without: [first], untimed: [r]", net)));
  CHECK(it.rows[0].before == Time{2'125'000'000'000});
  CHECK_THAT(files.error_of(document(measured("step: 1 s, untimed: [r]", net))),
             Contains("what has no time of its own is in that of a class"));
  CHECK_THAT(files.error_of(document(measured("forward: {matmul: 1 s}, untimed: [q]", net))),
             Contains("has no layer `q`"));
}

TEST_CASE("a profiler times gradients that are added with the backward that follows") {
  // b's backward adds to what c's made for r; r's runs next. 1,000 samples of 4 numbers are 16 kB,
  // which take 1 ms at 16 MB/s: to read both and write the sum 3 ms.
  Files files;
  files.write("slow.yaml",
              "extends: board\nplatform: slow\nmemories: {ram: {bandwidth: 16 MB/s}}\n"
              "processors: {cpu: {kernels: {additions: true}}}\n");
  const std::string net =
      "{workload: net, input: [4], loss: none, batch: 1000, layers: [{linear: {features: 4, bias: "
      "false, name: a}}, {relu: {name: r}}, {linear: {features: 4, bias: false, name: b}}, "
      "{linear: "
      "{features: 4, bias: false, name: c, from: r}}, {add: {skip: b}}]}";
  const std::string times = "layers: {r: {backward: 1 s}, b: {backward: 1 s}, a: {backward: 1 s}}";
  const auto rows = [&](const std::string& measurement) {
    return files.calibrated(document(measured(measurement, net), "", "slow")).rows;
  };
  const std::string layer_by_layer = ", layer_by_layer: true";
  const auto whole = rows(times), layered = rows(times + layer_by_layer);
  constexpr Time addition{3'000'000'000};
  CHECK(layered[0].before == whole[0].before + addition);
  CHECK(layered[1].before == whole[1].before - addition);
  CHECK(layered[2].before == whole[2].before);
  // Where r has no time of its own, a runs next.
  const std::string products = "backward: {matmul: 1 s}" + layer_by_layer;
  CHECK(rows(products + ", untimed: [r]")[0].before == rows(products)[0].before + addition);
  // The profiler waits for each of a backward's products; the input of `a` has no gradient.
  const CalibrationSpec spec = read_calibration(
      parse_document(document(measured(times + layer_by_layer, net), "", "slow"), "fit.yaml"));
  const MeasurementSet set = read_measurements(spec, files.path());
  std::vector<std::size_t> waits;
  for (const MeasuredPart& part : set.measurements.at(0).parts) waits.push_back(part.waiting);
  CHECK(waits == std::vector<std::size_t>{1, 2, 1});
}

TEST_CASE("another device is slower throughout, by a factor that is none of the platform's") {
  // The product takes 2 s where a step was measured, at half of the peak; on another device a
  // quarter longer.
  const Files files;
  const std::string other = ", other_device: true";
  const Calibration it = files.calibrated(document(
      measured("step: 4 s") + measured("forward: {matmul: 2500 ms}" + other),
      measured("backward: {matmul: 2 s}") + measured("backward: {matmul: 2500 ms}" + other)));
  REQUIRE(it.fitted.slowdown);
  CHECK(as_fraction(*it.fitted.slowdown) == Approx(1.25).margin(0.001));
  CHECK(as_fraction(*it.fitted.efficiency[0].compute) == Approx(0.5).margin(0.001));
  for (const MeasuredRow& row : it.rows) CHECK(std::abs(error_of(row, Moment::after)) < 2'000);
  CHECK_THAT(calibration_text(it, Style{}),
             Contains("times of the other device") && Contains("125 %"));
  const auto untold = [&](const std::string& fit, const std::string& test) {
    CHECK_THAT(files.error_of(document(measured(fit), measured(test))),
               Contains("is of another device, and nothing tells how much slower that is"));
  };
  untold("step: 4 s" + other, "step: 4 s");
  untold("step: 4 s", "step: 4 s" + other);
  CHECK_THAT(files.error_of(
                 document(measured("step: 4 s") + measured("step: 4 s, host_bound: true" + other))),
             Contains("expected one of `host_bound` and `other_device`"));
  CHECK_THAT(
      files.error_of(document(measured("step: 4 s") + measured("step: 5 s" + other) +
                              measured("step: 8 s, host_bound: true"))),
      Contains("is a step of another device, whose host is not that of what is `host_bound`"));
  CHECK_THAT(
      files.error_of(document(measured("step: 4 s") + measured("forward: {matmul: 9 s}" + other))),
      Contains("of a device that is half as fast, or less"));
  const std::string images =
      "{workload: images, batch: 1000, input: [4, 8, 8], loss: none, layers: [{conv2d: {channels: "
      "4, kernel: 1, bias: false}}]}";
  CHECK_THAT(
      files.error_of(document(measured("step: 4 s") + measured("step: 4 s" + other, images))),
      Contains("no kind of operators in common with those of the platform's own"));
}

TEST_CASE("another device computes more slowly, and its host is as fast") {
  // At 64 MFLOP/s two products of 1 ms, of which the first waits 50 us for its host. Measured are
  // 4.05 ms, so that each takes 2 ms, and on the other device 5.05 ms: 2.5 ms, a quarter longer.
  Files files;
  files.write("hosted.yaml",
              "extends: fast\nplatform: hosted\nprocessors: {cpu: {host_overhead: 50 us}}\n");
  const Calibration it = files.calibrated(document(measured("step: 4050 us"), "", "hosted") +
                                          measured("step: 5050 us, other_device: true"));
  CHECK(it.rows[0].before == Time{2'050'000'000});
  CHECK(as_fraction(*it.fitted.slowdown) == Approx(1.25).margin(0.001));
  for (const MeasuredRow& row : it.rows) CHECK(std::abs(error_of(row, Moment::after)) < 1'000);
}

TEST_CASE("how much slower another device is has to be told apart from the coefficients") {
  // A product of 1 s forward, 1 s backward, and a ReLU of 0.125 s each way. A step of 4.5 s and a
  // product of 2.5 s on the other device are 2 x + 0.25 y = 4.5 and s x = 2.5: s = 1.25 with x = y
  // = 2, and as well s = 1.5 with x = 5 / 3 and y = 14 / 3. A product of 1 s is met from s = 0.5
  // on.
  const Files files;
  const std::string net =
      "{workload: net, batch: 1000, input: [4], loss: none, layers: [{linear: {features: 8, bias: "
      "false}}, relu]}";
  const std::string step = measured("step: 4500 ms", net);
  for (const char* time : {"2500 ms", "1 s"}) {
    const std::string other = fmt::format("forward: {{matmul: {}}}, other_device: true", time);
    CAPTURE(time);
    CHECK_THAT(files.error_of(document(step + measured(other, net))),
               Contains("fit.yaml:5:5: error: measurement `it` is of another device, and nothing "
                        "tells how much slower that is: the fit is as good with a tenth more or "
                        "less; expected more measurements of the same operators on both devices"));
  }
  // The product on the platform's own device tells it.
  const Calibration it = files.calibrated(
      document(step + measured("forward: {matmul: 2500 ms}, other_device: true", net) +
               measured("forward: {matmul: 2 s}", net)));
  CHECK(as_fraction(*it.fitted.slowdown) == Approx(1.25).margin(0.001));
}

TEST_CASE("launches are in the waits of a profiler of layers, and in steps") {
  // Forward and backward of 1 ms each at 64 MFLOP/s, and 0.2 ms a launch.
  Files files;
  files.write("launched.yaml",
              "extends: fast\nplatform: launched\nprocessors: {cpu: {launch_overhead: 200 us}}\n");
  const Calibration it = files.calibrated(document(
      measured("step: 2400 us") + measured("forward: {matmul: 1250 us}, layer_by_layer: true"),
      measured("forward: {matmul: 1200 us}"), "launched"));
  CHECK(it.rows[0].before == Time{2'400'000'000});
  CHECK(it.rows[1].before == Time{1'000'000'000});
  CHECK(it.rows[2].before == Time{1'200'000'000});
  CHECK(it.fitted.launch_overhead == Time{200'000'000});
  REQUIRE(it.fitted.waits);
  CHECK(in_seconds((*it.fitted.waits)[0]) == Approx(250e-6).epsilon(0.02));
  for (const MeasuredRow& row : it.rows) CHECK(std::abs(error_of(row, Moment::after)) < 5'000);
  // Without a wait there would be neither that nor the launch: of each half one is under `fit`.
  const std::string layered = ", layer_by_layer: true";
  for (const std::string& fit :
       {std::string("step: 2400 us"), "forward: {matmul: 1250 us}" + layered})
    CHECK_THAT(
        files.error_of(document(measured(fit), measured("backward: {matmul: 1 ms}" + layered))),
        Contains("fit.yaml:6:5: error: measurement `it` times a backward layer by layer, and "
                 "nothing tells how long its profiler waits there; expected such a backward "
                 "under `fit`"));
}

TEST_CASE("a step of a network without operators is refused") {
  const Files files;
  const std::string nothing = "{workload: nothing, input: [4], loss: none, layers: [flatten]}";
  CHECK_THAT(files.error_of(document(measured("step: 1 s", nothing))),
             Contains("fit.yaml:4:") && Contains("workload `nothing` has no operator"));
}

TEST_CASE("half as long and twice as long weigh alike") {
  // The same forward, measured as 1 s and as 4 s: the middle by factor is 2 s. Squares of relative
  // errors would have made it (1 / 1 + 1 / 4) / (1 / 1 + 1 / 16) s.
  const Files files;
  const Calibration it = files.calibrated(
      document(measured("forward: {matmul: 1 s}") + measured("forward: {matmul: 4 s}")));
  CHECK(in_seconds(it.rows[0].after) == Approx(2).margin(0.01));
  CHECK(it.rows[0].after == it.rows[1].after);
}

TEST_CASE("a pattern names several layers") {
  const Files files;
  const std::string net =
      "{workload: net, input: [4], loss: none, layers: [{linear: {features: 4, name: in}}, "
      "{linear: {features: 4, name: in_2}}, {linear: {features: 4, name: out}}]}";
  const auto row = [&](const std::string& without) {
    return files.calibrated(document(measured("forward: {matmul: 1 s}, " + without, net))).rows[0];
  };
  CHECK(row("without: [\"in*\"]").before == row("without: [in, in_2]").before);
  CHECK(row("without: [in]").before > row("without: [\"in*\"]").before);
  CHECK_THAT(files.error_of(document(measured("forward: {matmul: 1 s}, without: [\"x*\"]", net))),
             Contains("workload `net` has no layer `x*`"));
}

TEST_CASE("kinds of kernels are fitted apart where a network has both") {
  // Convolutions of 4 to 4 channels over 8 x 8 positions, 3 x 3 with padding and 1 x 1: 18,432 and
  // 2,048 FLOP a sample. At 64 kFLOP/s 1,000 samples take 288 s and 32 s; measured is half and
  // twice that.
  Files files;
  const std::string net =
      "{workload: net, input: [4, 8, 8], loss: none, batch: 1000, layers: [{conv2d: {channels: 4, "
      "kernel: 3, padding: 1, bias: false, name: wide}}, {conv2d: {channels: 4, kernel: 1, bias: "
      "false, name: narrow}}]}";
  const Calibration it = files.calibrated(
      document(measured("layers: {wide: {forward: 144 s}, narrow: {forward: 64 s}}", net)));
  CHECK(it.rows[0].before == Time{288'000'000'000'000});
  CHECK(it.rows[1].before == Time{32'000'000'000'000});
  const auto fitted = [&](KernelKind kind) {
    return as_fraction(*it.fitted.efficiency[static_cast<std::size_t>(kind)].compute);
  };
  CHECK(fitted(kind_of(OperatorClass::convolution)) == Approx(2).margin(0.001));
  CHECK(fitted(KernelKind::pointwise_convolution) == Approx(0.5).margin(0.001));
  // The platform that is written says both, and what is known of its kernels.
  const Calibration tiled = files.calibrated(
      "kernels: {tile: 8, source: a book}\n" +
      document(measured("layers: {wide: {forward: 288 s}, narrow: {forward: 128 s}}", net)));
  CHECK(tiled.rows[0].before == it.rows[0].before);
  CHECK(error_of(tiled.rows[0], Moment::after) == 0);
  CHECK(as_fraction(*tiled.fitted.efficiency[1].compute) == Approx(2).margin(0.001));
  const std::string text = calibrated_platform(tiled, files.path(), files.path() / "new.yaml");
  CHECK_THAT(text,
             Contains("pointwise_convolution: {compute: 0.5") &&
                 Contains("kernels: {tile: 8, bias: false, additions: false}") &&
                 Contains("processors.cpu.kernels.tile: {quality: estimate, source: \"a book"));
}

TEST_CASE("a mix is of whole steps, of numbers that the workload has") {
  const Files files;
  const std::string mix = "mix: [{parts: 1, with: {inputs: 4}}]";
  CHECK_THAT(files.error_of(document(measured("forward: {matmul: 1 s}, " + mix))),
             Contains("a mix is of whole steps; expected `step` or `throughput` beside it"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, " + mix, "bert-base"))),
             Contains("`inputs`"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, mix: [{parts: 1, with: 4}]"))),
             Contains("expected a mapping such as `{sequence: 64}`, found `4`"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, mix: [{parts: 0, with: {}}]"))),
             Contains("expected a whole number from 1"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, mix: []"))),
             Contains("expected at least 1"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, " + mix, "[1]"))),
             Contains("found a list, expected a mapping with `model`"));
}

TEST_CASE("a profile is a row for each class of its forward, and of its backward") {
  Files files;
  const std::string folder = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/";
  files.write("cpu.yaml",
              "platform: cpu\nmemories: {ram: {capacity: 1 GiB, bandwidth: 10 GB/s}}\n"
              "processors: {cpu: {memory: ram, compute: {fp32: 100 GFLOP/s}}}\n");
  const std::string fit =
      "  - {name: r, source: own, workload: {model: resnet18, batch: 8}, "
      "profile: " +
      folder + "resnet18_profile.yaml}\n";
  const Calibration it = files.calibrated(document(fit, "", "cpu"));
  // By hand of the file: "time: N ns" after "forward: {" and "backward: {", by class.
  std::map<std::string, std::int64_t> sums;
  std::ifstream file(folder + "resnet18_profile.yaml");
  std::string of_class;
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find("class: "); at != std::string::npos)
      of_class = line.substr(at + 7);
    for (const char* half : {"forward", "backward"})
      if (const auto at = line.find(std::string(half) + ": {time: "); at != std::string::npos)
        sums[std::string(half) + " " + of_class] +=
            std::stoll(line.substr(at + std::string(half).size() + 9));
  }
  REQUIRE(it.rows.size() == sums.size());
  for (const MeasuredRow& row : it.rows) {
    CAPTURE(row.part);
    CHECK(row.measured == Time{1000} * sums.at(row.part));
  }
  // A one-core machine: convolutions are most of the step, and come out near what was measured.
  CHECK(summary_of(it, false, Moment::after).mean < summary_of(it, false, Moment::before).mean);
  CHECK_THAT(files.error_of(document("  - {name: r, source: own, workload: {model: resnet18, "
                                     "batch: 4}, profile: " +
                                         folder + "resnet18_profile.yaml}\n",
                                     "", "cpu")),
             Contains("was recorded with 8 samples, and the workload beside it has 4"));
}

TEST_CASE("the platform of a calibration has what was fitted, with its residual") {
  const Files files;
  const Calibration it =
      files.calibrated(document(measured("forward: {matmul: 2 s}"), measured("step: 5 s")));
  const auto target = files.path() / "new.yaml";
  const std::string text = calibrated_platform(it, files.path(), target);
  Diagnostics diagnostics;
  const Platform platform =
      read_platform(parse_document(text, target.string()), diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  CHECK(platform.name == "fitted");
  CHECK(platform.processors[0].efficiency[0] == Efficiency(Ratio{500'000'000}, kWhole));
  CHECK(platform.processors[0].efficiency[1] == kWhole);
  REQUIRE(platform.provenance.size() == 3);
  for (const Provenance& entry : platform.provenance) {
    const bool is_fitted = entry.path != "processors.cpu.efficiency.matmul.bandwidth";
    CHECK(entry.quality == (is_fitted ? Quality::measured : Quality::estimate));
    if (!is_fitted) continue;
    CHECK(entry.source ==
          "plimsoll calibrate, fitted: least squares over 1 row, mean error 0.0 %, 95th percentile "
          "0.0 %; judged by 1 row, mean error 20.0 %, 95th percentile 20.0 %");
    CHECK(entry.error_p95 == Ratio{200'000'000});
  }
  // From another folder the name leads nowhere, and the path does.
  const auto elsewhere = files.path() / "sub" / "new.yaml";
  CHECK_THAT(calibrated_platform(it, files.path(), elsewhere),
             Contains("extends: \"../board.yaml\""));
}

TEST_CASE("what a calibration cannot fit it refuses, and says where") {
  Files files;
  CHECK_THAT(files.error_of(document(measured("step: 1 s, throughput: 1 samples/s"))),
             Contains("fit.yaml:4:5: error: measured in several ways"));
  CHECK_THAT(files.error_of(document(measured("forward: {}"))), Contains("nothing was measured"));
  CHECK_THAT(files.error_of(document(measured("step: 0 s"))), Contains("a measured time of 0 s"));
  CHECK_THAT(files.error_of(document(measured("forward: {convolutoin: 1 s}"))),
             Contains("did you mean `convolution`?"));
  CHECK_THAT(files.error_of(document(measured("forward: {convolution: 1 s}"))),
             Contains("the forward of workload `one` has no operator of the class `convolution`"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, without: [linaer_1]"))),
             Contains("has no layer `linaer_1`; did you mean `linear_1`?"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s, without: ['*']"))),
             Contains("`without` leaves nothing of the step to be timed"));
  CHECK_THAT(files.error_of(document(measured("profile: none.yaml"))),
             Contains("there is no file"));
  CHECK_THAT(files.error_of(document(measured("step: 1 s"), "", "bord")),
             Contains("fit.yaml:2:11: error: there is no platform `bord`; did you mean `board`?"));
  CHECK_THAT(files.error_of(document(measured(
                 "step: 1 s",
                 "{workload: c, chain: [{name: s, forward: 1 s, backward: 1 s, saved: 1 B}]}"))),
             Contains("workload `c` has times of its own"));
  CHECK_THAT(files.error_of("calibration: c\nplatform: board\nfit: []\n"), Contains("fit"));
  CHECK_THAT(files.error_of(document(measured(
                 "step: 1 s",
                 "{workload: big, batch: 1000000000, input: [1000], loss: none, layers: [{linear: "
                 "{features: 1000, bias: false}}]}"))),
             Contains("takes longer on processor `cpu`"));
  files.write("two.yaml", "extends: board\nplatform: two\ncluster: {count: 2}\n");
  CHECK_THAT(files.error_of(document(measured("step: 1 s"), "", "two")),
             Contains("has 2 processors; expected `on`"));
  const std::string on = "on: cpu1\n" + document(measured("step: 1 s"), "", "two");
  CHECK_THROWS_WITH(
      calibrated_platform(files.calibrated(on), files.path(), files.path() / "x.yaml"),
      Contains("processor `cpu1` does not stand in `two` itself"));
}

}  // namespace plimsoll
