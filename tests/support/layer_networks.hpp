/// Networks layer by layer as Checkmate's program sees them in Keras and keras-segmentation, and the
/// training graphs that it makes of them.
///
/// Jain et al. 2020, "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization",
/// MLSys, arXiv:1910.02653. For L layers there are L forwards, a loss of 4 B a sample and L
/// backwards. The backward of layer i reads its output and, of each reader j of i, the output and the
/// backward of j; gradients have the sizes of outputs, in 4 B an element. A forward takes as many
/// operations as the program counts, the backward twice as many:
///
///   convolution      kernel * channels read, for each element made; bias and activation nothing
///   transposed one   channels read, for each element made, whatever its kernel
///   fully connected  elements read, for each element made
///   batch norm       4 for each element
///   addition         1 for each element that is read
///   activation, nearest upsampling  1 for each element made
///   pooling, padding, cropping, reshaping, concatenation, dropout  nothing
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::test {

/// Of one operator each, in their order.
struct TrainingGraph {
  std::vector<std::int64_t> bytes, operations;
  std::vector<std::vector<std::uint32_t>> reads;  ///< ascending

  [[nodiscard]] std::size_t edges() const {
    std::size_t sum = 0;
    for (const auto& of : reads) sum += of.size();
    return sum;
  }
};

/// Each layer reads the one before, but where it names another.
class LayerNetwork {
 public:
  struct Shape {
    std::int64_t channels = 0, height = 0, width = 0;
    [[nodiscard]] std::int64_t elements() const { return channels * height * width; }
  };

  LayerNetwork(std::int64_t batch, std::int64_t height, std::int64_t width)
      : batch_(batch), input_{3, height, width} {}

  [[nodiscard]] std::uint32_t last() const {
    return static_cast<std::uint32_t>(layers_.size() - 1);
  }
  /// The next layer reads `layer`.
  LayerNetwork& at(std::uint32_t layer) {
    from_ = layer;
    return *this;
  }

  /// Padded so that stride alone makes the output smaller.
  std::uint32_t conv(std::int64_t kernel, std::int64_t channels, std::int64_t stride = 1) {
    const Shape in = shape();
    return add_conv(kernel, {channels, (in.height - 1) / stride + 1, (in.width - 1) / stride + 1});
  }
  /// Not padded.
  std::uint32_t valid_conv(std::int64_t kernel, std::int64_t channels, std::int64_t stride = 1) {
    const Shape in = shape();
    return add_conv(
        kernel, {channels, (in.height - kernel) / stride + 1, (in.width - kernel) / stride + 1});
  }
  /// Not padded where it has a stride.
  std::uint32_t depthwise(std::int64_t stride) {
    constexpr std::int64_t kKernel = 3;
    Shape out = shape();
    if (stride > 1) {
      out.height = (out.height - kKernel) / stride + 1;
      out.width = (out.width - kKernel) / stride + 1;
    }
    return add(out, out.elements() * kKernel * kKernel);
  }
  std::uint32_t transposed(std::int64_t kernel, std::int64_t stride, std::int64_t channels) {
    const Shape in = shape();
    const Shape out{channels, (in.height - 1) * stride + kernel, (in.width - 1) * stride + kernel};
    return add(out, out.elements() * in.channels);
  }
  std::uint32_t dense(std::int64_t channels) {
    return add({channels, 1, 1}, shape().elements() * channels);
  }
  std::uint32_t pool(std::int64_t kernel = 2) {
    const Shape in = shape();
    return add({in.channels, (in.height - kernel) / 2 + 1, (in.width - kernel) / 2 + 1}, 0);
  }
  std::uint32_t norm() { return add(shape(), shape().elements() * 4); }
  std::uint32_t activation() { return add(shape(), shape().elements()); }
  std::uint32_t up() {
    const Shape in = shape();
    const Shape out{in.channels, in.height * 2, in.width * 2};
    return add(out, out.elements());
  }
  /// Dropout and reshaping.
  std::uint32_t same() { return add(shape(), 0); }
  std::uint32_t flat() { return add({shape().elements(), 1, 1}, 0); }
  std::uint32_t average() { return add({shape().channels, 1, 1}, 0); }
  /// More rows and columns, or fewer.
  std::uint32_t pad(std::int64_t rows, std::int64_t columns) {
    const Shape in = shape();
    return add({in.channels, in.height + rows, in.width + columns}, 0);
  }
  std::uint32_t sum(std::uint32_t with) {
    const std::uint32_t layer = add(shape(), shape().elements() * 2);
    join(layer, with);
    return layer;
  }
  std::uint32_t concatenate(std::uint32_t with) {
    Shape out = shape();
    out.channels += layers_[with].out.channels;
    const std::uint32_t layer = add(out, 0);
    join(layer, with);
    return layer;
  }

  [[nodiscard]] TrainingGraph training() const {
    const auto forwards = static_cast<std::uint32_t>(layers_.size());
    TrainingGraph graph;
    graph.bytes.resize(2 * forwards + 1);
    graph.operations.resize(2 * forwards + 1);
    graph.reads.resize(2 * forwards + 1);
    for (std::uint32_t i = 0; i < forwards; ++i) {
      const std::uint32_t backward = 2 * forwards - i;
      graph.bytes[i] = graph.bytes[backward] = 4 * batch_ * layers_[i].out.elements();
      graph.operations[i] = batch_ * layers_[i].operations;
      graph.operations[backward] = 2 * graph.operations[i];
      graph.reads[backward].push_back(i);
      for (const std::uint32_t read : layers_[i].reads) {
        graph.reads[i].push_back(read);
        graph.reads[2 * forwards - read].push_back(i);
        graph.reads[2 * forwards - read].push_back(backward);
      }
    }
    graph.bytes[forwards] = 4 * batch_;
    graph.reads[forwards] = {forwards - 1};
    graph.reads[forwards + 1].push_back(forwards);
    for (auto& reads : graph.reads) std::ranges::sort(reads);
    return graph;
  }

 private:
  struct Layer {
    std::vector<std::uint32_t> reads;
    Shape out;
    std::int64_t operations = 0;  ///< of one sample
  };
  static constexpr std::uint32_t kInput = 0xFFFFFFFF;

  [[nodiscard]] Shape shape() const { return from_ == kInput ? input_ : layers_[from_].out; }
  std::uint32_t add(const Shape& out, std::int64_t operations) {
    layers_.push_back({{}, out, operations});
    if (from_ != kInput) layers_.back().reads.push_back(from_);
    from_ = last();
    return from_;
  }
  std::uint32_t add_conv(std::int64_t kernel, const Shape& out) {
    return add(out, out.elements() * kernel * kernel * shape().channels);
  }
  void join(std::uint32_t layer, std::uint32_t with) { layers_[layer].reads.push_back(with); }

  const std::int64_t batch_;
  const Shape input_;
  std::uint32_t from_ = kInput;  ///< what the next layer reads
  std::vector<Layer> layers_;
};

/// Convolutions of VGG, a pooling after each block; the numbers of the poolings.
inline std::vector<std::uint32_t> add_vgg(LayerNetwork& network,
                                          std::span<const int> convolutions) {
  constexpr std::int64_t kChannels[] = {64, 128, 256, 512, 512};
  std::vector<std::uint32_t> pools;
  for (std::size_t block = 0; block < convolutions.size(); ++block) {
    for (int i = 0; i < convolutions[block]; ++i) network.conv(3, kChannels[block]);
    pools.push_back(network.pool());
  }
  return pools;
}

inline constexpr int kVgg16[] = {2, 2, 3, 3, 3}, kVgg19[] = {2, 2, 4, 4, 4};
inline constexpr std::int64_t kSegmentClasses = 19;

inline TrainingGraph vgg_graph(std::span<const int> convolutions) {
  LayerNetwork network(256, 224, 224);
  add_vgg(network, convolutions);
  network.flat();
  for (const std::int64_t channels : {4096, 4096, 1000}) network.dense(channels);
  return network.training();
}

inline TrainingGraph segmentation(LayerNetwork& network) {
  network.same();
  network.activation();
  return network.training();
}

/// Of VGG-16.
inline TrainingGraph fcn8_graph() {
  LayerNetwork network(32, 416, 608);
  const auto pools = add_vgg(network, kVgg16);
  network.conv(7, 4096);
  network.same();
  network.conv(1, 4096);
  network.same();
  network.conv(1, kSegmentClasses);
  network.transposed(4, 2, kSegmentClasses);
  network.pad(0, -2);
  const std::uint32_t coarse = network.pad(-2, 0);
  network.at(pools[3]).conv(1, kSegmentClasses);
  network.sum(coarse);
  network.transposed(4, 2, kSegmentClasses);
  const std::uint32_t wide = network.pad(0, -2);
  const std::uint32_t fine = network.at(pools[2]).conv(1, kSegmentClasses);
  network.at(wide).pad(-2, 0);
  network.sum(fine);
  network.transposed(16, 8, kSegmentClasses);
  return segmentation(network);
}

inline void add_decoder_block(LayerNetwork& network, std::int64_t channels) {
  network.pad(2, 2);
  network.valid_conv(3, channels);
  network.norm();
}

inline TrainingGraph segnet_graph() {
  LayerNetwork network(32, 416, 608);
  for (const std::int64_t channels : {64, 128, 256, 256}) {
    add_decoder_block(network, channels);
    network.activation();
    network.pool();
  }
  add_decoder_block(network, 512);
  for (const std::int64_t channels : {256, 128, 64}) {
    network.up();
    add_decoder_block(network, channels);
  }
  network.conv(3, kSegmentClasses);
  return segmentation(network);
}

/// Of the first four blocks of VGG-16.
inline TrainingGraph unet_graph() {
  LayerNetwork network(32, 416, 608);
  const auto pools = add_vgg(network, std::span(kVgg16).first(4));
  add_decoder_block(network, 512);
  for (std::size_t level = 3; level-- > 0;) {
    network.up();
    network.concatenate(pools[level]);
    add_decoder_block(network, std::int64_t{64} << level);
  }
  network.conv(3, kSegmentClasses);
  return segmentation(network);
}

inline TrainingGraph mobilenet_graph() {
  LayerNetwork network(512, 224, 224);
  const auto act = [&] {
    network.norm();
    network.activation();
  };
  network.pad(1, 1);
  network.valid_conv(3, 32, 2);
  act();
  constexpr std::int64_t kBlocks[][2] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                                         {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                                         {512, 1}, {1024, 2}, {1024, 1}};
  for (const auto& [channels, stride] : kBlocks) {
    if (stride > 1) network.pad(1, 1);
    network.depthwise(stride);
    act();
    network.conv(1, channels);
    act();
  }
  network.average();
  network.same();
  network.same();
  network.conv(1, 1000);
  return segmentation(network);
}

inline TrainingGraph resnet50_graph() {
  LayerNetwork network(256, 224, 224);
  const auto act = [&] {
    network.norm();
    network.activation();
  };
  network.pad(6, 6);
  network.valid_conv(7, 64, 2);
  act();
  network.pad(2, 2);
  network.pool(3);
  constexpr std::int64_t kStages[][3] = {{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}};
  for (const auto& [channels, blocks, stride] : kStages)
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::uint32_t in = network.last();
      const std::int64_t by = block == 0 ? stride : 1;
      network.conv(1, channels, by);
      act();
      network.conv(3, channels);
      act();
      const std::uint32_t main = network.conv(1, 4 * channels);
      if (block == 0) {
        const std::uint32_t side = network.at(in).conv(1, 4 * channels, by);
        const std::uint32_t normed = network.at(main).norm();
        network.at(side).norm();
        network.sum(normed);
      } else {
        network.norm();
        network.sum(in);
      }
      network.activation();
    }
  network.average();
  network.dense(1000);
  return network.training();
}

}  // namespace plimsoll::test
