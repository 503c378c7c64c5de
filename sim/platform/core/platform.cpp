#include "platform/core/platform.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

template <class Id, class T>
std::optional<Id> find_by_name(const std::vector<T>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &T::name);
  if (found == parts.end()) return std::nullopt;
  return static_cast<Id>(found - parts.begin());
}

bool has_energy(const Memory& memory) {
  return memory.power || memory.read.energy || memory.write.energy;
}
bool has_energy(const Processor& processor) {
  return processor.power || processor.energy_per_flop;
}
bool has_energy(const Link& link) {
  return link.power || link.energy;
}

}  // namespace

std::int64_t bytes_per_element(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 8;
    case DType::fp32:
    case DType::tf32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::fp8:
    case DType::int8:
      break;
  }
  return 1;
}

std::string to_text(DType dtype) {
  static constexpr std::array<const char*, kDTypes> kNames{"fp64", "fp32", "tf32", "bf16",
                                                           "fp16", "fp8",  "int8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string to_text(Quality quality) {
  static constexpr std::array kNames{"measured", "datasheet", "headline", "derived", "estimate"};
  return kNames[static_cast<std::size_t>(quality)];
}

const Memory& Platform::operator[](MemoryId id) const {
  return memories[static_cast<std::size_t>(id)];
}
const Processor& Platform::operator[](ProcessorId id) const {
  return processors[static_cast<std::size_t>(id)];
}
const Link& Platform::operator[](LinkId id) const {
  return links[static_cast<std::size_t>(id)];
}

std::optional<MemoryId> Platform::find_memory(const std::string& memory) const {
  return find_by_name<MemoryId>(memories, memory);
}

std::optional<ProcessorId> Platform::find_processor(const std::string& processor) const {
  return find_by_name<ProcessorId>(processors, processor);
}

bool Platform::has_energy() const {
  const auto any = [](const auto& parts) {
    return std::ranges::any_of(parts, [](const auto& part) { return plimsoll::has_energy(part); });
  };
  return any(memories) || any(processors) || any(links);
}

Power Platform::idle_power() const {
  Power sum;
  const auto add = [&](const auto& components) {
    for (const auto& it : components)
      if (it.power) sum += it.power->idle;
  };
  add(processors);
  add(memories);
  add(links);
  return sum;
}

Quality Platform::worst_quality() const {
  if (provenance.empty() || !without_provenance.empty()) return Quality::estimate;
  return std::ranges::max(provenance, {}, &Provenance::quality).quality;
}

}  // namespace plimsoll
