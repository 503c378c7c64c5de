// remat/checkmate on the instances that a free solver closed with the published program and rows
// over what is kept: CPU seconds of the search that it starts from, and of program and solver.
//
//   bench_checkmate
//
// The training graphs are made by the rule of the published code (Jain et al. 2020, MLSys,
// arXiv:1910.02653): for L forwards one loss and L backwards; the backward of i reads the output of
// i, and of each reader j of i the output and the backward of j. Shapes are those of the networks;
// times are millions of multiply-adds, twice for a backward. So VGG16 and VGG19 have the sizes of the published
// graphs, the others nearly; times differ. The layered graph is one in the manner of a public one.
#include "cpu_clock.hpp"
#include "layered_graph.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"

#include <cstdio>
#include <span>
#include <string>

using namespace plimsoll;

namespace {

constexpr int kNodes = 100;
/// Multiply-adds of one sample: published times are coarse, too.
constexpr std::int64_t kTimeUnit = 1'000'000;

struct Layer {
  std::vector<std::uint32_t> reads;
  std::int64_t channels = 0, height = 0, width = 0, time = 0;
};

class Network {
 public:
  Network(std::int64_t batch, std::int64_t height, std::int64_t width)
      : batch_(batch), height_(height), width_(width) {}

  void conv(std::int64_t channels, std::int64_t kernel = 3) {
    const std::int64_t inputs = layers_.empty() ? 3 : layers_.back().channels;
    add(channels, kernel * kernel * inputs);
  }
  void pool() { resize(1, 2); }
  void up() { resize(2, 1); }
  void resize(std::int64_t times, std::int64_t parts) {
    height_ = height_ * times / parts;
    width_ = width_ * times / parts;
    other();
  }
  void dense(std::int64_t channels) {
    const Layer& last = layers_.back();
    const std::int64_t inputs = last.channels * last.height * last.width;
    height_ = width_ = 1;
    add(channels, inputs);
  }
  /// Padding, normalization, dropout.
  void other() { add(layers_.back().channels, 1); }
  void join(std::size_t layer, bool is_concatenation) {
    const std::int64_t channels = layers_.back().channels;
    add(is_concatenation ? channels + layers_[layer].channels : channels, 1);
    layers_.back().reads.push_back(static_cast<std::uint32_t>(layer));
    std::ranges::sort(layers_.back().reads);
  }
  /// The output of `layer` beside the last, through a convolution of its own.
  void side(std::size_t layer, std::int64_t channels) {
    const std::size_t before = layers_.size() - 1;
    height_ = layers_[layer].height;
    width_ = layers_[layer].width;
    add(channels, layers_[layer].channels);
    layers_.back().reads = {static_cast<std::uint32_t>(layer)};
    join(before, false);
  }
  [[nodiscard]] std::size_t last() const { return layers_.size() - 1; }

  [[nodiscard]] OperatorGraph training() const {
    OperatorGraph graph;
    const auto forwards = static_cast<std::uint32_t>(layers_.size());
    std::vector<std::vector<std::uint32_t>> readers(layers_.size());
    for (std::uint32_t i = 0; i < forwards; ++i) {
      bench::add_node(graph, layers_[i].time, bytes(i), layers_[i].reads);
      for (const std::uint32_t read : layers_[i].reads) readers[read].push_back(i);
    }
    bench::add_node(graph, 0, 4, {forwards - 1});
    for (std::uint32_t i = forwards; i-- > 0;) {
      std::vector<std::uint32_t> reads{i};
      if (i + 1 == forwards) reads.push_back(forwards);
      for (const std::uint32_t reader : readers[i]) {
        reads.push_back(reader);
        reads.push_back(2 * forwards - reader);
      }
      std::ranges::sort(reads);
      bench::add_node(graph, 2 * layers_[i].time, bytes(i), reads);
    }
    return graph;
  }

 private:
  void add(std::int64_t channels, std::int64_t work_an_output) {
    std::vector<std::uint32_t> reads;
    if (!layers_.empty()) reads.push_back(static_cast<std::uint32_t>(layers_.size() - 1));
    layers_.push_back({reads, channels, height_, width_,
                       channels * height_ * width_ * work_an_output / kTimeUnit + 1});
  }
  [[nodiscard]] std::int64_t bytes(std::size_t layer) const {
    return 4 * batch_ * layers_[layer].channels * layers_[layer].height * layers_[layer].width;
  }

  const std::int64_t batch_;
  std::int64_t height_, width_;
  std::vector<Layer> layers_;
};

/// Convolutions of VGG, a pooling after each block; the numbers of the poolings.
std::vector<std::size_t> add_vgg(Network& network, std::span<const int> convolutions) {
  constexpr std::int64_t kChannels[] = {64, 128, 256, 512, 512};
  std::vector<std::size_t> pools;
  for (std::size_t block = 0; block < convolutions.size(); ++block) {
    for (int i = 0; i < convolutions[block]; ++i) network.conv(kChannels[block]);
    network.pool();
    pools.push_back(network.last());
  }
  return pools;
}

OperatorGraph vgg(std::span<const int> convolutions) {
  Network network(256, 224, 224);
  add_vgg(network, convolutions);
  network.other();
  for (const std::int64_t channels : {4096, 4096, 1000}) network.dense(channels);
  return network.training();
}

constexpr int kVgg16[] = {2, 2, 3, 3, 3}, kVgg19[] = {2, 2, 4, 4, 4}, kFourBlocks[] = {2, 2, 3, 3};
constexpr std::int64_t kClasses = 21;

OperatorGraph fcn8() {
  Network network(32, 416, 608);
  const auto pools = add_vgg(network, kVgg16);
  network.conv(4096, 7);
  network.other();
  network.conv(4096, 1);
  network.other();
  network.conv(kClasses, 1);
  for (const std::size_t pool : {pools[3], pools[2]}) {
    network.up();
    network.other();
    network.side(pool, kClasses);
  }
  network.resize(8, 1);
  for (int i = 0; i < 4; ++i) network.other();
  return network.training();
}

void add_up_block(Network& network, std::int64_t channels) {
  network.other();
  network.conv(channels);
  network.other();
}

OperatorGraph segnet() {
  Network network(32, 416, 608);
  add_vgg(network, kVgg16);
  add_up_block(network, 512);
  for (const std::int64_t channels : {512, 256, 128, 64}) {
    network.up();
    add_up_block(network, channels);
  }
  network.conv(50);
  return network.training();
}

OperatorGraph unet() {
  Network network(32, 416, 608);
  const auto pools = add_vgg(network, kFourBlocks);
  add_up_block(network, 512);
  for (int level = 2; level >= 0; --level) {
    network.up();
    network.join(pools[static_cast<std::size_t>(level)], true);
    add_up_block(network, std::int64_t{64} << level);
  }
  network.conv(50);
  network.other();
  network.other();
  return network.training();
}

double percent(std::int64_t time, const OperatorGraph& graph) {
  return 100 * static_cast<double>(time) / static_cast<double>(graph.time().count());
}

void measure(const char* name, const OperatorGraph& graph, std::int64_t tenths) {
  const RerunGroups groups = rerun_groups(graph);
  const std::int64_t room = (StagedSchedule(graph, groups, 0).peak() * tenths + 9) / 10;
  const auto gaps = gap_bound(graph, groups, room, Work());
  std::printf("%-8s %4zu  0.%lld", name, graph.nodes.size(), static_cast<long long>(tenths));
  if (!gaps || room < largest_step(graph)) {
    std::printf("  no plan\n");
    return;
  }
  const Work work;
  double begin = bench::cpu_seconds();
  RerunSearch search(graph, groups, {}, work);
  const auto plan = search.run(room, *gaps, {});
  const double searched = bench::cpu_seconds() - begin;
  begin = bench::cpu_seconds();
  const auto known = plan ? std::optional(plan->time()) : std::nullopt;
  const StagedOptimum found = solve_staged_program(graph, groups, room, known, kNodes, work);
  const double solved = bench::cpu_seconds() - begin;
  StagedSchedule best(graph, groups, room);
  if (found.reruns) best.add(*found.reruns);
  std::printf("  gaps %8.4f %%  search %8.4f %% %6.2f s  %s %8.4f %%, at least %8.4f %% %6.2f s\n",
              percent(*gaps, graph), plan ? percent(plan->time(), graph) : -1.0, searched,
              found.is_closed ? "closed" : "open  ",
              percent(found.reruns ? best.time() : known.value_or(-1), graph),
              percent(found.bound, graph), solved);
}

}  // namespace

int main() {
  for (const std::int64_t tenths : {9}) measure("VGG16", vgg(kVgg16), tenths);
  for (const std::int64_t tenths : {9, 8}) measure("VGG19", vgg(kVgg19), tenths);
  for (const std::int64_t tenths : {9, 8, 7}) measure("FCN-8", fcn8(), tenths);
  for (const std::int64_t tenths : {8, 6}) measure("SegNet", segnet(), tenths);
  for (const std::int64_t tenths : {8, 5}) measure("U-Net", unet(), tenths);
  for (const std::int64_t tenths : {9, 8, 7})
    measure("layered", bench::layered_graph(100, 19), tenths);
}
