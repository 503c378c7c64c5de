#include "plan/core/mirror_problems.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

class Mirrors {
 public:
  Mirrors(const Plan& plan, const Platform& platform, const Topology& topology, std::size_t most)
      : plan_(plan),
        platform_(platform),
        topology_(topology),
        most_(most),
        likes_(platform.processors.size(), 0),
        is_mirror_(platform.processors.size(), false),
        is_mirrored_memory_(platform.memories.size(), false),
        like_(platform.memories.size()) {
    for (std::uint32_t m = 0; m < like_.size(); ++m) like_[m] = MemoryId{m};
    for (const Mirror& it : plan.mirrors)
      like_[index(platform[it.processor].memory)] = platform[it.like].memory;
    for (const MemoryMirror& it : plan.memory_mirrors) like_[index(it.memory)] = it.like;
  }

  std::vector<std::string> run() {
    for (const Mirror& mirror : plan_.mirrors) note(mirror);
    for (const Mirror& mirror : plan_.mirrors) check(mirror);
    check_memories();
    for (const Lane& lane : plan_.lanes)
      if (lane.image) check_image(lane);
    check_links();
    if (plan_.mirrors.empty()) return std::move(problems_);
    check_uses();
    if (std::ranges::any_of(platform_.links, [](const Link& l) { return l.power || l.energy; }))
      refuse("the plan plays one of several replicas, but links of the platform draw power");
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    if (problems_.size() < most_)
      problems_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  const std::string& name(ProcessorId processor) const { return platform_[processor].name; }

  void note(const Mirror& mirror) {
    ++likes_[index(mirror.like)];
    if (is_mirror_[index(mirror.processor)])
      refuse("`{}` is a mirror twice", name(mirror.processor));
    is_mirror_[index(mirror.processor)] = true;
    auto memory = is_mirrored_memory_.begin() + index(platform_[mirror.processor].memory);
    if (*memory) refuse("`{}` shares its memory with another mirror", name(mirror.processor));
    *memory = true;
  }

  void check(const Mirror& mirror) {
    if (is_mirror_[index(mirror.like)])
      refuse("`{}` does what `{}` does, which is a mirror itself", name(mirror.processor),
             name(mirror.like));
    if (!are_alike(platform_, mirror.processor, mirror.like))
      refuse("`{}` is not like `{}`, or their memories differ", name(mirror.processor),
             name(mirror.like));
    if (likes_[index(mirror.like)] != likes_[index(plan_.mirrors.front().like)])
      refuse("`{}` has {} mirrors and `{}` has {}", name(plan_.mirrors.front().like),
             likes_[index(plan_.mirrors.front().like)], name(mirror.like),
             likes_[index(mirror.like)]);
  }

  void check_memories() {
    if (plan_.mirrors.empty() && !plan_.memory_mirrors.empty())
      return refuse("memories have mirrors, but no processors");
    for (const MemoryMirror& it : plan_.memory_mirrors) {
      auto memory = is_mirrored_memory_.begin() + index(it.memory);
      if (*memory) refuse("`{}` is a mirror twice", platform_[it.memory].name);
      *memory = true;
    }
    std::vector<std::uint32_t> likes(platform_.memories.size(), 0);
    for (const MemoryMirror& it : plan_.memory_mirrors) {
      if (is_mirrored_memory_[index(it.like)])
        refuse("`{}` holds what `{}` holds, which is a mirror itself", platform_[it.memory].name,
               platform_[it.like].name);
      if (!are_alike(platform_, it.memory, it.like))
        refuse("`{}` is not like `{}`", platform_[it.memory].name, platform_[it.like].name);
      ++likes[index(it.like)];
    }
    const std::uint32_t wanted = plan_.mirrors.empty() ? 0 : replicas_of(plan_) - 1;
    for (std::uint32_t m = 0; m < likes.size(); ++m)
      if (likes[m] != 0 && likes[m] != wanted)
        refuse("`{}` has {} mirrors; expected {}, as processors have", platform_.memories[m].name,
               likes[m], wanted);
  }

  void check_uses() {
    for (const Lane& lane : plan_.lanes)
      if (lane.kind == Lane::Kind::stream &&
          (is_mirror_[index(lane.processor)] ||
           is_mirrored_memory_[index(platform_[lane.processor].memory)]))
        refuse("`{}` is a mirror, or shares the memory of one, and has a lane",
               name(lane.processor));
    for (const Buffer& buffer : plan_.buffers)
      if (is_mirrored_memory_[index(buffer.memory)])
        return refuse("a buffer is in `{}`, the memory of a mirror", platform_[buffer.memory].name);
  }

  void check_links() {
    if (plan_.mirrors.empty() && !plan_.link_mirrors.empty())
      return refuse("links have mirrors, but no processors");
    std::vector<bool> is_mirror(2 * platform_.links.size(), false);
    const auto port = [](LinkId link, std::uint8_t direction) {
      return 2 * index(link) + direction;
    };
    for (const LinkMirror& it : plan_.link_mirrors) {
      if (is_mirror[port(it.link, it.direction)])
        refuse("`{}` is a mirror twice in one direction", platform_[it.link].name);
      is_mirror[port(it.link, it.direction)] = true;
    }
    for (const LinkMirror& it : plan_.link_mirrors) {
      const Link &link = platform_[it.link], &like = platform_[it.like];
      if (is_mirror[port(it.like, it.like_direction)])
        refuse("`{}` carries what `{}` carries, which is a mirror itself", link.name, like.name);
      if (link.latency != like.latency || link.duplex != like.duplex ||
          link.bandwidth[it.direction] != like.bandwidth[it.like_direction])
        refuse("`{}` is not like `{}`, which it mirrors", link.name, like.name);
    }
  }

  void check_image(const Lane& lane) {
    if (plan_.mirrors.empty()) return refuse("a channel has an image, but the plan has no mirrors");
    const Route* out = topology_.route(lane.from, lane.to);
    const Route* in = topology_.route(lane.image->from, lane.image->to);
    const std::string& from = platform_[lane.from].name;
    const std::string& image = platform_[lane.image->from].name;
    if (like(lane.to) != lane.image->to || like(lane.image->from) != lane.from)
      return refuse(
          "the way from `{}` to `{}` is not what mirrors take from `{}`, its image, to `{}`", from,
          platform_[lane.to].name, image, platform_[lane.image->to].name);
    if (in == nullptr)
      return refuse("no link leads from `{}` to `{}`", image, platform_[lane.image->to].name);
    if (in->latency != out->latency || in->bandwidth != out->bandwidth)
      refuse("the way from `{}` to `{}` is not like that from `{}`, its image", from,
             platform_[lane.to].name, image);
    for (const Hop& hop : in->hops)
      if (std::ranges::any_of(out->hops, [&](const Hop& other) { return share(hop, other); }))
        refuse("what leaves `{}` and its image take link `{}` the same way", from,
               platform_[hop.link].name);
    for (const Route* route : {in, out})
      for (const Hop& hop : route->hops)
        if (platform_[hop.link].sharing != Sharing::fifo)
          refuse("a channel with an image crosses `{}`; expected `fifo` links",
                 platform_[hop.link].name);
  }

  /// Where what mirrors have in a memory is of those that are played.
  MemoryId like(MemoryId memory) const { return like_[index(memory)]; }

  bool share(const Hop& a, const Hop& b) const {
    return a.link == b.link &&
           (a.direction == b.direction || platform_[a.link].duplex == Duplex::half);
  }

  const Plan& plan_;
  const Platform& platform_;
  const Topology& topology_;
  std::size_t most_;
  std::vector<std::uint32_t> likes_;  ///< by processor: mirrors of it
  std::vector<bool> is_mirror_, is_mirrored_memory_;
  std::vector<MemoryId> like_;  ///< by memory
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> mirror_problems(const Plan& plan, const Platform& platform,
                                         const Topology& topology, std::size_t most) {
  return Mirrors(plan, platform, topology, most).run();
}

// All that they are must be equal but for which one it is.
bool are_alike(const Platform& platform, MemoryId a, MemoryId b) {
  Memory one = platform[a];
  const Memory& other = platform[b];
  one.name = other.name;
  one.copy_of = other.copy_of;
  return one == other;
}

bool are_alike(const Platform& platform, ProcessorId a, ProcessorId b) {
  Processor one = platform[a];
  const Processor& other = platform[b];
  const MemoryId memory = one.memory;
  one.name = other.name;
  one.copy_of = other.copy_of;
  one.memory = other.memory;
  return one == other && are_alike(platform, memory, other.memory);
}

std::uint32_t replicas_of(const Plan& plan) {
  std::uint32_t replicas = 1;
  for (const Mirror& mirror : plan.mirrors)
    if (mirror.like == plan.mirrors.front().like) ++replicas;
  return replicas;
}

}  // namespace plimsoll
