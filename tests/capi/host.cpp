// The C++ part of a program that loads the C interface: strings, streams, locales, maps and exceptions of its own libstdc++.
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

extern "C" int host_cpp_works(void);

int host_cpp_works(void) {
  std::map<std::string, int> counts;
  for (int i = 0; i < 100; ++i) ++counts["key-" + std::to_string(i % 10)];
  std::ostringstream out;
  out << counts.size() << ' ' << 1.5;
  try {
    (void)counts.at("nobody");
  } catch (const std::out_of_range&) {
    return out.str() == "10 1.5" ? 1 : 0;
  }
  return 0;
}
