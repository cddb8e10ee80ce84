// Replaces operator new for the whole program. A unit of its own: inlined into its users, g++ 12 takes free() for a mismatch.
// Clang links an operator new of its own into what it compiles for ThreadSanitizer. There the sanitizer tells of each allocation instead, those of
// malloc included, so that the tests hold under it, too.
#include "support/counting_new.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WARMROUTE_TSAN_OWNS_NEW 1
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace {
std::atomic<std::size_t> calls{0};
std::atomic<std::size_t> bytes_out{0};
}  // namespace

namespace warmroute::test {
std::size_t allocations() { return calls.load(std::memory_order_relaxed); }
std::size_t live_bytes() { return bytes_out.load(std::memory_order_relaxed); }
bool counts_malloc() {
#ifdef WARMROUTE_TSAN_OWNS_NEW
  return true;
#else
  return false;
#endif
}
}  // namespace warmroute::test

#ifdef WARMROUTE_TSAN_OWNS_NEW

namespace {
void taken(const volatile void* p, std::size_t) {
  calls.fetch_add(1, std::memory_order_relaxed);
  bytes_out.fetch_add(__sanitizer_get_allocated_size(p), std::memory_order_relaxed);
}
void given(const volatile void* p) {
  bytes_out.fetch_sub(__sanitizer_get_allocated_size(p), std::memory_order_relaxed);
}
[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(taken, given);
}  // namespace

#else

namespace {
void* take(std::size_t bytes, std::size_t alignment) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (p != nullptr) bytes_out.fetch_add(malloc_usable_size(p), std::memory_order_relaxed);
  return p;
}
void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* p = take(bytes, alignment)) return p;
  throw std::bad_alloc();
}
void give(void* p) noexcept {
  if (p != nullptr) bytes_out.fetch_sub(malloc_usable_size(p), std::memory_order_relaxed);
  std::free(p);
}
constexpr std::size_t kPlain = alignof(std::max_align_t);
}  // namespace

void* operator new(std::size_t n) { return take_or_throw(n, kPlain); }
void* operator new[](std::size_t n) { return take_or_throw(n, kPlain); }
void* operator new(std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return take_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return take(n, kPlain); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return take(n, kPlain); }
void operator delete(void* p) noexcept { give(p); }
void operator delete[](void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give(p); }

#endif  // WARMROUTE_TSAN_OWNS_NEW
