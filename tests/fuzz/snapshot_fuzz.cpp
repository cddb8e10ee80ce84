// Whatever the file, it is refused with a message or read; what was read is written, reads back, and is written alike. An
// envelope lets nothing through that was not signed.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "warmroute/control/signature.hpp"
#include "warmroute/control/snapshot.hpp"

namespace {

void check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto unsigned_too = warmroute::verify_snapshot(bytes, {{}, true});
  check(!warmroute::verify_snapshot(bytes, {}));
  if (!unsigned_too) {
    check(!unsigned_too.error().message.empty());
    return 0;
  }
  const auto snapshot = warmroute::parse_snapshot(unsigned_too->payload);
  if (!snapshot) {
    check(!snapshot.error().message.empty());
    return 0;
  }
  const std::string text = warmroute::write_snapshot(*snapshot);
  const auto again = warmroute::parse_snapshot(text);
  check(again.ok());
  check(warmroute::write_snapshot(*again) == text);
  return 0;
}
