// Versions, status, errors, names.
#include <cstdio>
#include <cstring>

#include "support.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/policy.hpp"

#define WR_STRING_OF(x) #x
#define WR_STRING(x) WR_STRING_OF(x)

namespace warmroute::capi {

wr_status fail(wr_error* err, Code code, std::string_view message, std::uint64_t offset) noexcept {
  const auto status = static_cast<wr_status>(code);
  if (!writable(err)) return status;
  err->status = status;
  err->offset = offset;
  std::size_t size = std::min(message.size(), sizeof err->message - 1);
  // Never half a character of UTF-8; four bytes in a row that begin none are not UTF-8, and stay.
  if (size < message.size()) {
    std::size_t border = size;
    while (border > 0 && size - border < 4 && (static_cast<unsigned char>(message[border]) & 0xC0u) == 0x80u) --border;
    if (size - border < 4) size = border;
  }
  if (size > 0) std::memcpy(err->message, message.data(), size);
  err->message[size] = '\0';
  return status;
}

wr_status give(std::string_view text, std::size_t nul, char* buf, std::size_t cap, std::size_t* needed,
               wr_error* err) noexcept {
  const std::size_t size = text.size() + nul;
  *needed = size;
  if (buf == nullptr) return WR_STATUS_OK;
  if (cap < size) {
    char message[96];
    std::snprintf(message, sizeof message, "the result needs %zu bytes, the buffer has %zu", size, cap);
    return fail(err, Code::capacity, message);
  }
  if (!text.empty()) std::memcpy(buf, text.data(), text.size());
  if (nul != 0) buf[text.size()] = '\0';
  return WR_STATUS_OK;
}

wr_status refuse_abi(wr_error* err, std::uint32_t abi_version) noexcept {
  char message[160];
  std::snprintf(
      message, sizeof message,
      "the program was compiled for ABI %u, the library that is loaded (%s) has ABI %u: install the one that fits",
      abi_version, wr_version(), static_cast<unsigned>(WR_ABI_VERSION));
  return fail(err, Code::abi_mismatch, message);
}

namespace {

// The names in the tables are string literals: they end in NUL. "unknown" comes from the functions themselves.
template <class Enum, class Name>
const char* name_of(std::uint32_t value, Name&& name) noexcept {
  return value > 0xFF ? "unknown" : name(static_cast<Enum>(value)).data();
}

}  // namespace
}  // namespace warmroute::capi

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* wr_status_text(wr_status status) { return code_name(static_cast<Code>(status)).data(); }
const char* wr_version(void) {
  return WR_STRING(WR_VERSION_MAJOR) "." WR_STRING(WR_VERSION_MINOR) "." WR_STRING(WR_VERSION_PATCH);
}
uint32_t wr_abi_version(void) { return WR_ABI_VERSION; }

const char* wr_algorithm_name(uint32_t algorithm) { return name_of<Algorithm>(algorithm, algorithm_name); }
const char* wr_verdict_name(uint32_t verdict) { return name_of<Verdict>(verdict, verdict_name); }
const char* wr_reason_name(uint32_t reason) { return name_of<Reason>(reason, reason_name); }
const char* wr_split_name(uint32_t split) { return name_of<Split>(split, split_name); }
const char* wr_outcome_name(uint32_t outcome) { return name_of<Outcome>(outcome, outcome_name); }

}  // extern "C"
