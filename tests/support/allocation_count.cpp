#include "support/allocation_count.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::uint64_t allocations = 0;

/// nullptr where there is no memory left.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  ++allocations;
  const std::size_t units = bytes == 0 ? 1 : (bytes + alignment - 1) / alignment;
  return std::aligned_alloc(alignment, units * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

namespace plimsoll {
std::uint64_t allocation_count() {
  return allocations;
}
}  // namespace plimsoll

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, kAlignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kAlignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
