// Prints a usage journal, also one that is being written: a line of JSON per event, or FOCUS rows as CSV.
//   usage_journal <directory> [--json | --focus] [--begins] [--from <segment>:<offset>]
// The cursor behind the last record goes to stderr, for --from the next time.
#include <cstdio>
#include <cstring>
#include <string>

#include <warmroute/usage/journal.hpp>

int main(int argc, char** argv) {
  bool focus = false;
  bool begins = false;
  warmroute::JournalCursor from;
  bool good = argc >= 2;
  for (int i = 2; i < argc && good; ++i) {
    unsigned long long segment = 0;
    unsigned long long offset = 0;
    if (std::strcmp(argv[i], "--focus") == 0) {
      focus = true;
    } else if (std::strcmp(argv[i], "--begins") == 0) {
      begins = true;
    } else if (std::strcmp(argv[i], "--from") == 0 && i + 1 < argc &&
               std::sscanf(argv[i + 1], "%llu:%llu", &segment, &offset) == 2) {
      from = {segment, offset};
      ++i;
    } else {
      good = std::strcmp(argv[i], "--json") == 0;
    }
  }
  if (!good) {
    std::fprintf(stderr, "usage: %s <directory> [--json | --focus] [--begins] [--from <segment>:<offset>]\n", argv[0]);
    return 2;
  }
  auto reader = warmroute::JournalReader::open(argv[1], from);
  if (!reader) {
    std::fprintf(stderr, "%s\n", reader.error().message.c_str());
    return 1;
  }
  std::string out(focus ? warmroute::focus_header() : "");
  warmroute::JournalRecord record;
  for (;;) {
    const auto more = reader->next(record, begins);
    if (!more) {
      std::fprintf(stderr, "%s\n", more.error().message.c_str());
      return 1;
    }
    if (!*more) break;
    focus ? warmroute::append_focus_rows(record, out) : warmroute::append_json_line(record, out);
    std::fwrite(out.data(), 1, out.size(), stdout);
    out.clear();
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  const warmroute::JournalCursor end = reader->cursor();
  std::fprintf(stderr, "%llu:%llu\n", static_cast<unsigned long long>(end.segment),
               static_cast<unsigned long long>(end.offset));
  return 0;
}
