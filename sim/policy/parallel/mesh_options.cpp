#include "policy/parallel/mesh_options.hpp"

#include "base/divisors.hpp"
#include "policy/interface/entry.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;

void check_nodes(const MeshOptions& parallel, Diagnostics& diagnostics) {
  const bool is_hierarchical = parallel.collectives == MeshOptions::Algorithm::hierarchical;
  const std::int64_t data = MeshOptions::size(parallel.data);
  if (parallel.node && !is_hierarchical)
    diagnostics.error(parallel.node->where,
                      parallel.collectives == MeshOptions::Algorithm::automatic
                          ? "`node` belongs to `collectives: hierarchical`; `auto` finds the nodes "
                            "that take least"
                          : "`node` belongs to `collectives: hierarchical`");
  else if (is_hierarchical && !parallel.node)
    diagnostics.error(parallel.where,
                      "`collectives: hierarchical` needs `node`: how many neighbours on the data "
                      "axis make a node");
  else if (parallel.node && data % parallel.node->value != 0)
    diagnostics.error(parallel.node->where,
                      fmt::format("nodes of {} ranks do not divide a data axis of {}",
                                  parallel.node->value, data),
                      expected_divisor(data, parallel.node->value));
}

/// `what` a key says of it, up to its name.
void check_tensor_axis(const MeshOptions& parallel, const std::optional<Located<bool>>& key,
                       const char* what, Diagnostics& diagnostics) {
  if (key && key->value && MeshOptions::size(parallel.tensor) < 2)
    diagnostics.error(key->where, fmt::format("{} a tensor axis, and there is none", what),
                      "`tensor: N` says how many there are");
}

using LaidAxis = MeshOptions::Axis;

Format<LaidAxis> axis_name() {
  std::vector<std::pair<std::string, LaidAxis>> words;
  for (const NamedAxis& it : kNamedAxes) words.emplace_back(it.name, it.axis);
  return one_of(std::move(words));
}

Format<MeshOptions::Algorithm> algorithm_name() {
  std::vector<std::pair<std::string, MeshOptions::Algorithm>> words;
  for (const NamedAlgorithm& it : kNamedAlgorithms) words.emplace_back(it.name, it.algorithm);
  return one_of(std::move(words));
}

void check_order(const MeshOptions& parallel, Diagnostics& diagnostics) {
  if (!parallel.order) return;
  for (const auto& [name, axis, size, along] : kNamedAxes) {
    std::size_t times = 0;
    for (const Located<LaidAxis>& it : *parallel.order)
      if (it.value == axis && ++times > 1)
        diagnostics.error(it.where, fmt::format("`order` has `{}` twice", name));
    if (times == 0 && parallel.size(axis) > 1)
      diagnostics.error(
          parallel.order->front().where,
          fmt::format("`order` leaves out `{}`, an axis of {} ranks", name, parallel.size(axis)),
          "expected all axes of more than one, from the innermost outwards");
  }
}

}  // namespace

const char* name_of(MeshOptions::Axis axis) {
  return std::ranges::find(kNamedAxes, axis, &NamedAxis::axis)->name;
}

const char* name_of(MeshAxis axis) {
  const auto* named = std::ranges::find(kNamedAxes, axis, &NamedAxis::along);
  return named == std::end(kNamedAxes) ? "replica" : named->name;
}

const char* name_of(MeshOptions::Algorithm algorithm) {
  return std::ranges::find(kNamedAlgorithms, algorithm, &NamedAlgorithm::algorithm)->name;
}

std::int64_t MeshOptions::size(Axis axis) const {
  return size(this->*std::ranges::find(kNamedAxes, axis, &NamedAxis::axis)->size);
}

std::int64_t MeshOptions::stride(Axis axis) const {
  std::int64_t stride = 1;
  if (order) {
    for (const Located<LaidAxis>& it : *order) {
      if (it.value == axis) break;
      stride *= size(it.value);
    }
    return stride;
  }
  for (const NamedAxis& it : kNamedAxes) {
    if (it.axis == axis) break;
    stride *= size(this->*it.size);
  }
  return stride;
}

std::int64_t MeshOptions::product() const {
  std::int64_t product = 1;
  for (const NamedAxis& it : kNamedAxes)
    product = std::min(product * size(this->*it.size), kMostRanks * kMostRanks);
  return product;
}

void switch_off_without_tensor(Node& parallel) {
  Diagnostics diagnostics;
  for (const char* key : {"sequence", "overlap"})
    if (const Node* found = parallel.find(key))
      parallel.set(key, parse_value("false", found->where().origin), diagnostics);
  diagnostics.throw_if_errors();
}

Format<MeshOptions> parallel_format() {
  using P = MeshOptions;
  const auto axis = [] { return located(integer(1, kMostRanks)); };
  return Record<P>("`parallel`", "Training on many processors: sizes of the axes of a mesh.")
      .where(&P::where)
      .optional(
          "data", &P::data, axis(),
          "ranks that run other samples of the mini-batch and reduce their gradients; of each "
          "rank of the expert axis so many; default 1")
      .optional("tensor", &P::tensor, axis(),
                "ranks that divide each layer of a network among them; default 1")
      .optional("pipeline", &P::pipeline, axis(),
                "stages of the network, in the order of a `pipeline/` policy; default 1")
      .optional("context", &P::context, axis(),
                "ranks that divide the positions of each sample among them, and pass keys and "
                "values round for attention; default 1")
      .optional("expert", &P::expert, axis(),
                "ranks that run other samples, too, and divide the experts of each mixture among "
                "them; default 1")
      .optional("sequence", &P::sequence, located(boolean()),
                "the ranks of the tensor axis divide the positions of what is whole on each "
                "otherwise; default false")
      .optional("overlap", &P::overlap, located(boolean()),
                "in the backward, what the ranks of the tensor axis exchange passes while "
                "gradients of weights are made, as in Megatron-LM; default false")
      .optional(
          "order", &P::order, list_of(located(axis_name()), 1, std::size(kNamedAxes)),
          "axes from the innermost outwards: neighbours on the first are neighbours among the "
          "devices; default [tensor, context, expert, data, "
          "pipeline]")
      .optional("devices", &P::devices, list_of(located(name()), 1, 65'536),
                "the processors, in the order of the axes, where `gpu` means all of gpu0, gpu1, "
                "..; default: "
                "all of the platform")
      .optional(
          "collectives", &P::collectives, algorithm_name(),
          "`ring`; `tree`: recursive halving and doubling, of 2, 4, 8, .. ranks; "
          "`hierarchical`: rings within nodes of `node` ranks, and between them; or `auto`: for "
          "each size the one of these that takes least, in nodes of any size; default ring")
      .optional("node", &P::node, axis(),
                "neighbours on the data axis that make a node of `hierarchical` collectives")
      .optional(
          "play", &P::play,
          located(one_of<P::Play>(
              {{"automatic", P::Play::automatic}, {"once", P::Play::once}, {"all", P::Play::all}})),
          "whether ranks that do the same are played `once`, which is refused where it is not "
          "exact, or `all` of them; default automatic: once where that is exact")
      .check({"data", "collectives", "node"},
             [](P& parallel, const Node&, Diagnostics& diagnostics) {
               check_nodes(parallel, diagnostics);
             })
      .check({"order"}, [](P& parallel, const Node&,
                           Diagnostics& diagnostics) { check_order(parallel, diagnostics); })
      .check({"tensor", "sequence"},
             [](P& parallel, const Node&, Diagnostics& diagnostics) {
               check_tensor_axis(parallel, parallel.sequence,
                                 "`sequence: true` divides among the ranks of", diagnostics);
             })
      .check({"tensor", "overlap"},
             [](P& parallel, const Node&, Diagnostics& diagnostics) {
               check_tensor_axis(parallel, parallel.overlap,
                                 "`overlap: true` is about what passes between the ranks of",
                                 diagnostics);
             })
      .format();
}

Format<ShardingOptions> sharding_format() {
  using S = ShardingOptions;
  return Record<S>("`sharding`",
                   "What ranks that would all hold the same hold a part of (ZeRO, FSDP).")
      .where(&S::where)
      .optional("stage", &S::stage, integer(0, 3),
                "0 nothing, 1 optimizer state, 2 gradients, too, 3 parameters, too; default 0")
      .optional("group", &S::group, located(integer(1, kMostRanks)),
                "neighbours on the data axis among which state is in parts, so that each group has "
                "a copy of it (hybrid sharding): gradients are scattered within groups, and each "
                "part is reduced across them; default: all ranks of the axis")
      .optional("overlap", &S::overlap, boolean(),
                "collectives of gradients run beside the backward; default true")
      .optional("prefetch", &S::prefetch, integer(0, 1'000'000),
                "stage 3, or `state`: units whose parameters are gathered ahead of the one that "
                "runs; default "
                "1")
      .optional("reshard", &S::reshard, located(boolean()),
                "stage 3: whether parameters go after the forward and are gathered again for the "
                "backward, as FSDP's reshard_after_forward; default true")
      .optional(
          "from_master", &S::from_master, located(boolean()),
          "stage 3 with `master_weights`: a rank holds no part in 2 bytes, but casts its part "
          "of the master copy for each gather, as PyTorch's FSDP does; default false")
      .optional("bucket", &S::bucket, located(quantity<Bytes>(Unlimited::allowed)),
                "gradients that are reduced together; default 25 MiB, the first 1 MiB")
      .check({"bucket"},
             [](S& sharding, const Node&, Diagnostics& diagnostics) {
               if (sharding.bucket && sharding.bucket->value == Bytes{})
                 diagnostics.error(sharding.bucket->where,
                                   "a `bucket` of 0 B holds no gradient; expected at least 1 B");
             })
      .format();
}

void refuse_missing_way(const Location& where, const std::string& from, const std::string& to) {
  refuse(where,
         fmt::format("the mesh has neighbours that no link joins: none leads from `{}` to `{}`",
                     from, to));
}

}  // namespace plimsoll
