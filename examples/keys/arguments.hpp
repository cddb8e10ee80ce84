/// The command line of warmroute-keys: words, and `--name value` or `--name=value`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::keys {

struct Arguments {
  std::vector<std::string> words;
  std::map<std::string, std::string, std::less<>> options;

  [[nodiscard]] std::optional<std::string> option(std::string_view name) const {
    const auto it = options.find(name);
    return it == options.end() ? std::nullopt : std::optional(it->second);
  }
};

}  // namespace warmroute::keys
