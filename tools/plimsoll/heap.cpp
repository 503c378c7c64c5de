#include "heap.hpp"

#include <cstdlib>

#ifdef __GLIBC__
#include <climits>
#include <cstdint>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace plimsoll {

#ifdef __GLIBC__
namespace {

constexpr int kReserved = 512 << 20;
constexpr int kGrowth = 16 << 20;
constexpr std::size_t kLargePage = 2 << 20;
/// The most that glibc takes; larger blocks are mapped, and given back.
constexpr int kMapped = 32 << 20;

void ask_for_large_pages(void* from, void* to) {
  const auto begin = (reinterpret_cast<std::uintptr_t>(from) + kLargePage - 1) & ~(kLargePage - 1);
  const auto end = reinterpret_cast<std::uintptr_t>(to) & ~(kLargePage - 1);
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

void prepare_heap() {
  mallopt(M_MMAP_THRESHOLD, kMapped);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, kReserved);
  void* first = std::malloc(kGrowth);  // makes the heap grow by all that is reserved
  if (first != nullptr) ask_for_large_pages(first, sbrk(0));
  std::free(first);
  mallopt(M_TOP_PAD, kGrowth);
}
#else
void prepare_heap() {}
#endif

}  // namespace plimsoll
