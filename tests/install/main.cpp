// A consumer: includes everything, uses the headers, and the library where it is linked.
#include <warmroute/warmroute.hpp>

#include <cstdio>

int main() {
  const warmroute::Status status = warmroute::Error{warmroute::Code::stale, "seen from outside", warmroute::kNoOffset};
  std::printf("%s\n", std::string(warmroute::code_name(status.code())).c_str());
#ifdef WITH_LIBRARY
  if (warmroute::trace::find_hardware_profile("70b-8xh100") == nullptr) return 1;
  std::puts("library linked");
#endif
  return 0;
}
