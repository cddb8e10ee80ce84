// Where keys are, see credentials.hpp.
#include "gateway/credentials.hpp"

#include <array>
#include <utility>

#include "common/text.hpp"
#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace beast = examples::beast;

namespace {

constexpr std::array<std::string_view, 4> kKeyHeaders{"authorization", "x-api-key", "x-goog-api-key", "api-key"};

/// Calls `each(name, value)` for the members of a target's query.
template <class Each>
void for_each_member(std::string_view target, Each&& each) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return;
  for (std::string_view rest = target.substr(mark + 1); !rest.empty();) {
    const std::string_view member = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(member.size() + 1, rest.size()));
    each(member.substr(0, member.find('=')), member);
  }
}

}  // namespace

std::string_view client_key(const ClientRequest& request, std::string& scratch) {
  for (const auto name : kKeyHeaders) {
    std::string_view value = view(request[their(name)]);
    if (name == "authorization") {
      constexpr std::string_view kScheme = "Bearer ";
      if (value.size() <= kScheme.size() || !beast::iequals(their(value.substr(0, kScheme.size())), their(kScheme)))
        continue;
      value.remove_prefix(kScheme.size());
      while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    }
    if (!value.empty()) return value;
  }
  scratch.clear();
  for_each_member(view(request.target()), [&](std::string_view name, std::string_view member) {
    if (name == "key" && scratch.empty() && member.size() > 4) scratch = examples::url_decoded(member.substr(4));
  });
  return scratch;
}

bool is_key_header(std::string_view name) {
  for (const auto known : kKeyHeaders) {
    if (beast::iequals(their(name), their(known))) return true;
  }
  return false;
}

std::string without_key(std::string_view target) {
  std::string out(target.substr(0, target.find('?')));
  char sign = '?';
  for_each_member(target, [&](std::string_view name, std::string_view member) {
    if (name == "key") return;
    out.append(1, std::exchange(sign, '&')).append(member);
  });
  return out;
}

}  // namespace warmroute::gateway
