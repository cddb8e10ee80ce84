/// Abseil flags with the spelling that people type: --time-scale is --time_scale.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"

namespace warmroute::examples {

/// Parses the command line into the program's flags. returns: the arguments that are no flags. Ends the process with a
/// message when a flag is unknown or malformed, and with the list of flags after --help.
inline std::vector<std::string> parse_flags(int argc, char** argv, const std::string& usage) {
  absl::SetProgramUsageMessage(usage);
  absl::FlagsUsageConfig config;  // --help lists the flags of this project's programs, wherever they were built
  config.contains_help_flags = [](absl::string_view file) {
    const std::string_view path(file.data(), file.size());
    return path.find("examples/") != std::string_view::npos || path.find("benchmarks/") != std::string_view::npos;
  };
  config.normalize_filename = [](absl::string_view file) {
    const std::string path(file.data(), file.size());
    for (const char* folder : {"examples/", "benchmarks/"}) {
      if (const std::size_t at = path.rfind(folder); at != std::string::npos) return path.substr(at);
    }
    return path;
  };
  absl::SetFlagsUsageConfig(config);
  std::vector<std::string> words(argv, argv + argc);
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    if (words[i].rfind("--", 0) != 0) continue;
    for (std::size_t at = 2; at < words[i].size() && words[i][at] != '='; ++at) {
      if (words[i][at] == '-') words[i][at] = '_';
    }
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const auto rest = absl::ParseCommandLine(static_cast<int>(pointers.size()), pointers.data());
  return {rest.begin() + 1, rest.end()};
}

/// For programs that take flags only.
inline void parse_flags_only(int argc, char** argv, const std::string& usage) {
  const auto rest = parse_flags(argc, argv, usage);
  if (rest.empty()) return;
  std::fprintf(stderr, "%s: unknown argument \"%s\"; see --help\n", argv[0], rest[0].c_str());
  std::exit(2);
}

}  // namespace warmroute::examples
