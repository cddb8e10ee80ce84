// Issues and revokes API keys in a signed snapshot file that gateways follow.
//   warmroute-keys init keys/ && warmroute-keys issue --team blue keys/snapshot
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "keys/commands.hpp"

namespace {

using warmroute::keys::Arguments;

struct Command {
  std::string_view name;
  std::size_t words;         // that it takes
  std::string_view options;  // each with a space behind it
  std::string_view help;
  int (*run)(const Arguments&);
};

constexpr std::array<Command, 7> kCommands{{
    {"init", 1, "",
     "init FOLDER\n      a signing key, its public half, a pepper and an empty snapshot in a folder; overwrites "
     "nothing",
     warmroute::keys::init},
    {"issue", 1, "team key-id not-after limits pepper signing-key ",
     "issue [--team T] [--key-id NAME] [--not-after TIME] [--limits JSON] SNAPSHOT\n"
     "      a new key: printed once, its digest into the snapshot; limits as in a snapshot:\n"
     "      '[{\"name\":\"rpm\",\"kind\":\"rate\",\"unit\":\"requests\",\"amount\":60,\"period_s\":60}]'",
     warmroute::keys::issue},
    {"rotate", 2, "overlap pepper signing-key ",
     "rotate [--overlap SECONDS] KEY SNAPSHOT\n      a new secret of a key; the old one holds for a day, or as long as "
     "said",
     warmroute::keys::rotate},
    {"revoke", 2, "signing-key ",
     "revoke KEY SNAPSHOT\n      for ever, whatever comes later; KEY is a public id or a name",
     warmroute::keys::revoke},
    {"list", 1, "signing-key ", "list SNAPSHOT\n      all keys; never their secrets or digests", warmroute::keys::list},
    {"rollback", 1, "to reason signing-key ",
     "rollback --to GENERATION --reason TEXT SNAPSHOT\n"
     "      an earlier generation again (kept as SNAPSHOT.g<n>); what was revoked since stays revoked",
     warmroute::keys::rollback},
    {"verify", 1, "verifying-key ",
     "verify [--verifying-key FILE] SNAPSHOT\n      signature and content, every fault named", warmroute::keys::verify},
}};

void print_help(std::FILE* to) {
  std::fprintf(to, "usage: warmroute-keys COMMAND ...\n\n");
  for (const Command& command : kCommands) std::fprintf(to, "  %s\n", std::string(command.help).c_str());
  std::fprintf(
      to,
      "\nsigning.pem and pepper.<version> are looked for beside the snapshot; --signing-key FILE and\n"
      "--pepper VERSION=FILE name others. Each change is one more generation, and replaces the file as a whole.\n");
}

int misused(const std::string& why) {
  std::fprintf(stderr, "warmroute-keys: %s; see --help\n", why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--help" && std::string_view(argv[i]) != "-h") continue;
    print_help(stdout);
    return 0;
  }
  const auto* const command =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
  if (command == kCommands.end())
    return misused(name.empty() ? "no command" : "'" + std::string(name) + "' is no command");
  Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      arguments.words.push_back(std::move(word));
      continue;
    }
    const std::size_t sign = std::min(word.find('='), word.size());
    const std::string option = word.substr(2, sign - 2);
    if (option.empty() || (" " + std::string(command->options)).find(" " + option + " ") == std::string::npos)
      return misused(std::string(command->name) + " has no option " + word.substr(0, sign));
    if (sign == word.size() && i + 1 == argc) return misused(word + " wants a value");
    const std::string value = sign < word.size() ? word.substr(sign + 1) : std::string(argv[++i]);
    if (!arguments.options.emplace(option, value).second) return misused("--" + option + " is there twice");
  }
  if (arguments.words.size() != command->words)
    return misused(std::string(command->name) + " takes " + std::to_string(command->words) + " argument" +
                   (command->words == 1 ? "" : "s"));
  return command->run(arguments);
}
