/// Lines of the gateway's own metrics in Prometheus text exposition; names get their prefix here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmroute::gateway {

inline void family(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP warmroute_gateway_").append(name).append(" ").append(help);
  out.append("\n# TYPE warmroute_gateway_").append(name).append(" ").append(type).append("\n");
}

template <class Value>
void sample(std::string& out, std::string_view name, std::string_view label, std::string_view label_value,
            Value value) {
  out.append("warmroute_gateway_").append(name);
  if (!label.empty()) out.append("{").append(label).append("=\"").append(label_value).append("\"}");
  out.append(" ").append(std::to_string(value)).append("\n");
}

template <class Value>
void single(std::string& out, std::string_view name, std::string_view type, std::string_view help, Value value) {
  family(out, name, type, help);
  sample(out, name, {}, {}, value);
}

/// A counter for each of `names`.
template <class Counts, class Names>
void labelled(std::string& out, std::string_view name, std::string_view label, std::string_view help,
              const Counts& counts, const Names& names) {
  family(out, name, "counter", help);
  for (std::size_t i = 0; i < names.size(); ++i) sample(out, name, label, names[i], counts[i].load());
}

}  // namespace warmroute::gateway
