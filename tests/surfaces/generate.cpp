// Writes an operations file for the three surfaces: the same calls through C++, C and Python must print the same lines.
//   usage: surfaces_generate SEED REQUESTS [usage] > operations.txt
// One operation per line, fields separated by one space, "-" = empty or none; replicas are meant by the order of their successful `add`,
// requests by the order of their `route`, `routeblocks` and `body`; NOW in ns. RUNS: see line.h. What each prints:
//   policy JSON                                        policy ok | policy CODE
//   add NAME POOL WEIGHT CAPACITY NOW                  add SLOT GENERATION | add error CODE
//   remove|clear N NOW, health N STATE NOW, signal N KIND VALUE NOW      the operation and CODE (0 = ok)
//   stored N TIER PARENT IDS RUNS NOW                  stored CODE
//   removed N TIER IDS NOW                             removed COUNT | removed error CODE
//   engine N SEQ PAYLOAD NOW                           engine STATE NEXT STORED REMOVED ORPHANS GAPS RESTARTS BAD   (a KvSource's; PAYLOAD in hex)
//   page N NOW TEXT                                    page SIGNALS REFUSED UNMATCHED | page error CODE   (a metrics page; "|" ends its lines)
//   route|peek MODEL SESSION TENANT MAX_OUTPUT RUNS NOW           route DECISION   (MAX_OUTPUT, INPUT_TOKENS: -1 = unknown, as 0 is in C)
//   routeblocks MODEL KIND INPUT_TOKENS HASHES NOW     route DECISION
//   body API NOW JSON                                  route DECISION | body error CODE OFFSET
//   first K NOW, finish K CACHED OUTPUT NOW, fail K OUTCOME NOW          the operation and 1 or 0
//   advance NOW                                        advance
//   home KEY                                           home MEMBER   (of a ring over all replicas ever added)
//   stats                                              stats VERDICTS REASONS OUTCOMES LATE IN_FLIGHT
// and those of generate_usage.hpp.
// DECISION: verdict reason slot generation fallbacks(slot.generation,... or -) ticket input device host disk shared best wait_ns prefill_ns
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "generate_usage.hpp"

namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, bool usage) : random_(seed), with_usage_(usage), usage_(random_) {}

  void run(std::size_t requests) {
    std::puts("policy {\"lease_ms\":60000,\"seed\":7,\"capacity_tokens\":60000,\"version\":1}");
    for (int i = 0; i < 8; ++i) add();
    if (with_usage_) usage_.begin();
    while (routed_ < requests) step();
    for (std::size_t k = routed_ > 500 ? routed_ - 500 : 0; k < routed_; ++k) {
      std::printf("finish %zu -1 -1 %" PRId64 "\n", k, now());
    }
    std::puts("stats");
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::int64_t now() { return now_ += static_cast<std::int64_t>(below(3'000'000)); }

  void add() {
    std::printf("add r%zu %s %zu %zu %" PRId64 "\n", replicas_, replicas_ % 3 == 2 ? "m2" : "-", 1 + below(3),
                below(4) == 0 ? 20'000 + below(50'000) : 0, now());
    ++replicas_;
  }
  std::size_t replica() { return below(replicas_); }
  std::size_t tier() {  // mostly the device, sometimes the host or the shared store
    const std::size_t which = below(8);
    return which == 0 ? 1 : which == 1 ? 3 : 0;
  }
  // A system prompt, a conversation, and turns of it: what real traffic shares.
  std::string runs() {
    const std::size_t system = below(6), talk = below(40);
    std::string text = std::to_string(1 + system) + ":" + std::to_string(200 + system * 37);
    for (std::size_t turn = 0, turns = below(6); turn < turns; ++turn) {
      text += "," + std::to_string(100 + talk * 10 + turn) + ":" + std::to_string(1 + below(2) * 150 + talk * 3);
    }
    return text;
  }
  void request(const char* op) {
    const char* models[]{"-", "m2", "unknown"};
    const char* tenants[]{"-", "-", "-", "acme"};
    std::string session = "-";
    if (below(3) == 0) session = "s" + std::to_string(below(60));
    std::printf("%s %s %s %s %d %s %" PRId64 "\n", op, models[below(3)], session.c_str(), tenants[below(4)],
                below(2) == 0 ? -1 : static_cast<int>(1 + below(1'000)), runs().c_str(), now());
  }
  void body() {
    static const char* const kBroken[]{
        "{\"messages\":[]}", "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}", "[1]", "{\"prompt\":\"x\"",
        "{\"model\":7,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"};
    if (below(5) == 0) {
      std::printf("body 0 %" PRId64 " %s\n", now(), kBroken[below(5)]);
    } else {
      const std::string system(300 + below(3) * 100, static_cast<char>('a' + below(3)));
      const std::string user(below(400), static_cast<char>('k' + below(5)));
      std::printf("body 0 %" PRId64
                  " {\"model\":\"m%zu\",\"messages\":[{\"role\":\"system\",\"content\":\"%s\"},"
                  "{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":%zu}\n",
                  now(), 1 + below(2), system.c_str(), user.c_str(), below(5) * 100);
    }
    ++routed_;
  }
  void blocks() {
    std::string list;
    for (std::size_t i = 0, n = 1 + below(40), talk = below(20); i < n; ++i) {
      char text[24];
      std::snprintf(text, sizeof text, "%s%zx", i == 0 ? "" : ",", 0x9E3779B97F4A7C15u * (talk * 100 + i + 1));
      list += text;
    }
    std::printf("routeblocks %s %zu %d %s %" PRId64 "\n", below(2) == 0 ? "-" : "m2", below(2),
                below(2) == 0 ? -1 : static_cast<int>(1 + below(2'000)), list.c_str(), now());
    ++routed_;
  }
  // Conversation c's blocks are named c * 1000 + i + 1; its tokens are one long run.
  void events() {
    const std::size_t c = below(10), from = below(20), count = 1 + below(12), n = below(3);  // three replicas report
    std::string ids;
    for (std::size_t i = 0; i < count; ++i) {
      char text[24];
      std::snprintf(text, sizeof text, "%s%zx", i == 0 ? "" : ",", c * 1'000 + from + i + 1);
      ids += text;
    }
    if (below(3) == 0) {
      std::printf("removed %zu %zu %s %" PRId64 "\n", n, tier(), ids.c_str(), now());
      return;
    }
    char parent[24] = "-";
    if (from > 0) std::snprintf(parent, sizeof parent, "%zx", c * 1'000 + from);
    const std::size_t tokens = below(30) == 0 ? count * 16 + 1 : count * 16;  // some do not fit
    std::printf("stored %zu %zu %s %s %zu:%zu %" PRId64 "\n", n, tier(), parent, ids.c_str(), 1 + c * 100 + from,
                tokens, now());
  }
  static std::string number(const char* format, std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(value));
    return text;
  }
  static std::string word(std::string_view text) {  // MessagePack, in hexadecimal: up to 31 bytes
    std::string out = number("%02llx", 0xa0 + text.size());
    for (const char c : text) out += number("%02llx", static_cast<unsigned char>(c));
    return out;
  }
  // What engine 3, 4 or 5 publishes: blocks of a system prompt, which requests have; block i of prompt s is named s * 1000 + i + 1.
  std::string event() {
    const std::size_t kind = below(60), seed = 1 + below(6), from = below(3) * below(12), count = 1 + below(12);
    if (kind == 0) return "91" + word("AllBlocksCleared");
    std::string ids = number("dc%04llx", count);
    for (std::size_t i = 0; i < count; ++i) ids += number("cf%016llx", seed * 1'000 + from + i + 1);
    if (kind < 12) return "93" + word("BlockRemoved") + ids + word("GPU");
    std::string tokens = number("dc%04llx", count * 16);
    for (std::size_t k = from * 16; k < (from + count) * 16; ++k) {
      tokens += number("ce%08llx", static_cast<std::uint32_t>(seed * 2'654'435'761u + k * 40'503u));
    }
    const std::string parent = from == 0 ? "c0" : number("cf%016llx", seed * 1'000 + from);
    return "97" + word("BlockStored") + ids + parent + tokens + "10c0" + word(kind < 16 ? "CPU" : "GPU");
  }
  void message() {
    const std::size_t n = below(3);
    std::uint64_t& next = next_[n];
    if (below(80) == 0) ++next;               // lost
    if (below(200) == 0) next = 0;            // the engine began anew
    if (next > 0 && below(100) == 0) --next;  // twice, or that again
    std::string payload = "93cb4044000000000000" + number("dc%04llx", 1);
    payload += event() + "00";
    if (below(150) == 0) payload.resize(payload.size() / 4 * 2);
    std::printf("engine %zu %" PRIu64 " %s %" PRId64 "\n", 3 + n, next++, payload.c_str(), now());
  }
  void page() {
    static const char* const kPages[]{
        "vllm:num_requests_running{engine=\"0\"} %zu|vllm:num_requests_waiting{engine=\"0\"} %zu|",
        "sglang:num_running_reqs %zu|sglang:num_queue_reqs %zu|", "nobody_knows %zu %zu|", "<html>%zu %zu"};
    const std::size_t which = below(20);
    char text[256];
    std::snprintf(text, sizeof text, kPages[which < 3 ? which + 1 : 0], below(40), below(10));
    std::printf("page %zu %" PRId64 " %s\n", replica(), now(), text);
  }
  void membership() {
    switch (below(6)) {
      case 0:
        if (replicas_ < 60) add();
        break;
      case 1:
        if (replicas_ > 10) std::printf("remove %zu %" PRId64 "\n", 8 + below(replicas_ - 8), now());
        break;
      case 2:
        std::printf("health %zu %zu %" PRId64 "\n", replica(), below(5) < 3 ? std::size_t{0} : below(3), now());
        break;
      case 3: std::printf("clear %zu %" PRId64 "\n", replica(), now()); break;
      case 4: std::printf("signal %zu %zu %zu %" PRId64 "\n", replica(), below(7), 1 + below(300), now()); break;
      default: std::printf("add r%zu - 0 0 %" PRId64 "\n", replicas_, now()); break;  // weight 0: refused
    }
  }
  void release() {
    if (routed_ == 0) return;
    const std::size_t back = std::min(routed_, std::size_t{64});
    const std::size_t k = routed_ - 1 - below(back);
    switch (below(8)) {
      case 0: std::printf("fail %zu %zu %" PRId64 "\n", k, 1 + below(6), now()); break;
      case 1:
      case 2:
      case 3: std::printf("first %zu %" PRId64 "\n", k, now()); break;
      default:
        std::printf("finish %zu %d %d %" PRId64 "\n", k, below(3) == 0 ? -1 : static_cast<int>(below(900)),
                    below(4) == 0 ? -1 : static_cast<int>(below(700)), now());
    }
  }
  void step() {
    const std::size_t kind = below(1'000);
    if (kind < 420) {
      request("route");
      ++routed_;
    } else if (kind < 460) request("peek");
    else if (kind < 490) body();
    else if (kind < 520) blocks();
    else if (kind < 570) events();
    else if (kind < 600) message();
    else if (kind < 606) membership();
    else if (kind < 607) std::puts("stats");
    else if (kind < 609)
      std::printf(
          "policy {\"algorithm\":\"%s\",\"lease_ms\":60000,\"seed\":7,\"capacity_tokens\":60000,\"version\":%zu}\n",
          below(2) == 0 ? "cost" : algorithm(), ++version_);
    else if (kind < 612) std::printf("advance %" PRId64 "\n", now());
    else if (kind < 615) page();
    else if (kind < 620) std::printf("home %" PRIx64 "\n", random_());
    else if (kind < 680 && with_usage_) usage_.step(now());
    else release();
  }
  const char* algorithm() {
    static const char* const kNames[]{"random",          "round_robin",  "least_requests",
                                      "least_tokens",    "power_of_two", "longest_match",
                                      "consistent_hash", "bounded_hash", "no_such_rule"};
    return kNames[below(9)];
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 1;
  std::size_t replicas_ = 0, routed_ = 0, version_ = 1;
  std::uint64_t next_[3]{};  // of what engines publish
  bool with_usage_;
  surfaces::UsageGenerator usage_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: surfaces_generate SEED REQUESTS [usage]\n");
    return 2;
  }
  Generator(std::strtoull(argv[1], nullptr, 10), argc > 3).run(std::strtoull(argv[2], nullptr, 10));
  return 0;
}
