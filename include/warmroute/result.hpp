/// Errors as values: `Result<T>` is a T or an `Error` with a code, a message and a byte offset.
/// Bad input and bad configuration come back this way; nothing in warmroute throws on its own account.
/// Policy outcomes ("no replica", "saturated") are not errors: see route/decision.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace warmroute {

/// What went wrong. Numbers are fixed for ever and only appended; tolerate unknown ones.
enum class Code : std::int32_t {
  ok = 0,
  // the caller's arguments or the state of the object
  invalid_argument = 1,
  not_found = 2,
  already_exists = 3,
  out_of_range = 4,
  capacity = 5,  ///< a configured limit (replicas, bytes, tickets) is reached
  stale = 6,     ///< the handle names something that was removed or released
  unsupported = 7,
  io = 8,
  internal = 9,
  out_of_memory = 10,  ///< through C only: C++ throws std::bad_alloc
  abi_mismatch = 11,   ///< through C only: header and library are of different ABI versions
  // bytes that came in from outside
  invalid_json = 20,
  invalid_utf8 = 21,
  invalid_unicode = 22,  ///< an escaped lone surrogate
  too_deep = 23,
  too_large = 24,
  not_an_object = 25,
  missing_field = 26,
  wrong_type = 27,
  value_out_of_range = 28,
  invalid_value = 29,
  empty_prompt = 30,
  malformed = 31,  ///< a line or record that is not of its format
};

/// returns: the code's name as spelled above. lifetime: static.
constexpr std::string_view code_name(Code code) noexcept {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid_argument";
    case Code::not_found: return "not_found";
    case Code::already_exists: return "already_exists";
    case Code::out_of_range: return "out_of_range";
    case Code::capacity: return "capacity";
    case Code::stale: return "stale";
    case Code::unsupported: return "unsupported";
    case Code::io: return "io";
    case Code::internal: return "internal";
    case Code::out_of_memory: return "out_of_memory";
    case Code::abi_mismatch: return "abi_mismatch";
    case Code::invalid_json: return "invalid_json";
    case Code::invalid_utf8: return "invalid_utf8";
    case Code::invalid_unicode: return "invalid_unicode";
    case Code::too_deep: return "too_deep";
    case Code::too_large: return "too_large";
    case Code::not_an_object: return "not_an_object";
    case Code::missing_field: return "missing_field";
    case Code::wrong_type: return "wrong_type";
    case Code::value_out_of_range: return "value_out_of_range";
    case Code::invalid_value: return "invalid_value";
    case Code::empty_prompt: return "empty_prompt";
    case Code::malformed: return "malformed";
  }
  return "unknown";
}

/// No byte offset applies.
inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

struct Error {
  Code code = Code::internal;
  std::string message;               ///< what is wrong, where, and what to do
  std::uint64_t offset = kNoOffset;  ///< units: bytes from the start of the input, where that is known
};

/// A value or an error. `if (auto r = f(); r) use(*r); else log(r.error().message);`
/// errors: reading the wrong side is the caller's bug and is undefined in release builds, as with std::optional.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Code code() const noexcept { return ok() ? Code::ok : error().code; }

  [[nodiscard]] T& value() & noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return &value(); }
  const T* operator->() const noexcept { return &value(); }
  [[nodiscard]] const Error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an error: the result of calls that give nothing back.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return error_.code == Code::ok; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] Code code() const noexcept { return error_.code; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }

 private:
  Error error_{Code::ok, {}, kNoOffset};
};
using Status = Result<void>;

}  // namespace warmroute
