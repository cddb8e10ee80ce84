/// What every function of the C interface does alike: nothing thrown passes the border, structs of other sizes are read and written
/// safely, results that do not fit are refused without touching anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "warmroute.h"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute::capi {

/// Fills the caller's error, if there is one. returns: the status.
wr_status fail(wr_error* err, Code code, std::string_view message, std::uint64_t offset = kNoOffset) noexcept;
inline wr_status fail(wr_error* err, const Error& error) noexcept {
  return fail(err, error.code, error.message, error.offset);
}
inline wr_status done(const Status& status, wr_error* err) noexcept {
  return status ? WR_STATUS_OK : fail(err, status.error());
}
inline wr_status null_argument(wr_error* err, std::string_view name) noexcept {
  return fail(err, Code::invalid_argument, name);
}

/// Runs `body`; whatever it throws becomes a status.
template <class Body>
wr_status guard(wr_error* err, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(err, Code::out_of_memory, "out of memory");
  } catch (const std::exception& e) {
    return fail(err, Code::internal, e.what());
  } catch (...) {
    return fail(err, Code::internal, "an exception that is not a std::exception");
  }
}

/// Beyond this no struct of ours will ever be: a size field that was never set.
inline constexpr std::uint32_t kAbsurdSize = 1u << 16;

/// The least size that a caller's struct can have: that of release 0.1.0. A struct that grows later gets a specialisation with its old size.
template <class T>
inline constexpr std::uint32_t kFirstSize = sizeof(T);
template <>
inline constexpr std::uint32_t kFirstSize<wr_policy> = offsetof(wr_policy, disaggregate);
template <>
inline constexpr std::uint32_t kFirstSize<wr_replica_statistics> = offsetof(wr_replica_statistics, engine_prefix_unit);

/// returns: whether the room for later fields is zero. A newer caller may have put one of them there: it must not be ignored.
template <class T>
bool reserved_is_zero(const T& s) noexcept {
  std::uint64_t any = 0;
  if constexpr (requires { s.reserved0; }) any = s.reserved0;
  for (const std::uint64_t word : s.reserved) any |= word;
  return any == 0;
}

/// A caller's input struct as this library knows it. The usual case (same size) copies nothing; what a shorter one lacks is as in `defaults`.
template <class T>
class Input {
 public:
  Input(const T* given, const T& defaults) noexcept : given_(given) {
    if (given == nullptr) return;
    if (given->struct_size == sizeof(T)) {
      if (!reserved_is_zero(*given)) refuse_unknown();
      return;
    }
    const std::uint32_t size = given->struct_size;
    given_ = nullptr;
    if (size < kFirstSize<T> || size > kAbsurdSize) {
      fault_ = "struct_size is not set, or absurd: start from the struct's WR_..._INIT";
      return;
    }
    if (size > sizeof(T)) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(given);
      if (std::any_of(bytes + sizeof(T), bytes + size, [](unsigned char b) { return b != 0; })) {
        refuse_unknown();
        return;
      }
    }
    copy_ = defaults;
    std::memcpy(&copy_, given, std::min<std::size_t>(size, sizeof(T)));
    if (reserved_is_zero(copy_)) given_ = &copy_;
    else refuse_unknown();
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  explicit operator bool() const noexcept { return given_ != nullptr; }
  const T& operator*() const noexcept { return *given_; }
  const T* operator->() const noexcept { return given_; }
  wr_status refuse(wr_error* err, std::string_view name_if_null) const noexcept {
    return fail(err, code_, fault_ != nullptr ? std::string_view(fault_) : name_if_null);
  }

 private:
  void refuse_unknown() noexcept {
    given_ = nullptr;
    fault_ =
        "the struct sets fields that this library does not know: it is older than your header, or reserved is not 0";
    code_ = Code::unsupported;
  }

  const T* given_;
  const char* fault_ = nullptr;
  Code code_ = Code::invalid_argument;
  T copy_;
};

/// returns: whether `out` is there and says a size that can be written to.
template <class T>
bool writable(const T* out) noexcept {
  return out != nullptr && out->struct_size >= kFirstSize<T> && out->struct_size <= kAbsurdSize;
}
inline constexpr std::string_view kBadOutput =
    "the output struct is NULL or its struct_size is not set: start from its WR_..._INIT";

/// Writes what both sides know; a newer caller's further fields keep what they had.
template <class T>
void write(T* out, T value) noexcept {
  value.struct_size = out->struct_size;
  if (out->struct_size >= sizeof(T)) *out = value;
  else std::memcpy(out, &value, out->struct_size);
}

/// The same into a struct that has no WR_..._INIT, where the caller sets nothing but struct_size: its further fields become 0.
template <class T>
void write_all(T* out, T value) noexcept {
  if (out->struct_size > sizeof(T)) {
    std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, out->struct_size - sizeof(T));
  }
  write(out, std::move(value));
}

inline std::string_view view(wr_str s) noexcept { return {s.data, s.size}; }
inline wr_str str(std::string_view s) noexcept { return {s.data(), s.size()}; }
/// returns: whether (pointer, size) can be read.
inline bool readable(wr_str s) noexcept { return s.data != nullptr || s.size == 0; }
template <class T>
bool readable(const T* data, std::size_t count) noexcept {
  return data != nullptr || count == 0;
}

/// Item i of an array whose items are `stride` bytes apart.
template <class T>
T* at(T* items, std::size_t i, std::size_t stride) noexcept {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(items) + i * stride);
}
template <class T>
bool strides_fit(std::size_t count, std::size_t stride) noexcept {
  return count <= 1 || (stride >= kFirstSize<T> && stride % alignof(T) == 0);
}

// The enumerations have these integers as their underlying types: the caller's arrays are read in place.
inline std::span<const BlockHash> block_hashes(const std::uint64_t* data, std::size_t count) noexcept {
  return {reinterpret_cast<const BlockHash*>(data), count};
}
inline std::span<BlockHash> block_hashes(std::uint64_t* data, std::size_t count) noexcept {
  return {reinterpret_cast<BlockHash*>(data), count};
}

inline ReplicaId id_of(wr_replica_id id) noexcept { return {id.slot, id.generation}; }
inline wr_replica_id id_of(ReplicaId id) noexcept { return {id.slot, id.generation}; }

/// A text or binary result for the two-call pattern. `nul`: 1 for text.
wr_status give(std::string_view text, std::size_t nul, char* buf, std::size_t cap, std::size_t* needed,
               wr_error* err) noexcept;

/// returns: whether a header of that ABI and this library fit.
inline bool abi_fits(std::uint32_t abi_version) noexcept { return abi_version == WR_ABI_VERSION; }
wr_status refuse_abi(wr_error* err, std::uint32_t abi_version) noexcept;

}  // namespace warmroute::capi
