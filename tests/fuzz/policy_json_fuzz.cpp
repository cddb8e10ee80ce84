// Whatever the bytes, a policy is refused with a message or valid and reads back as itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warmroute/route/policy_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = warmroute::policy_from_json({reinterpret_cast<const char*>(data), size});
  if (!policy) {
    if (policy.error().message.empty()) std::abort();
    return 0;
  }
  if (!warmroute::validate(*policy)) std::abort();
  const auto again = warmroute::policy_from_json(warmroute::policy_to_json(*policy));
  if (!again || !(*again == *policy)) std::abort();
  return 0;
}
