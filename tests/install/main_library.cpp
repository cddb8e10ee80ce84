// A consumer of the library: something of each of the dependencies that it has to be linked with (JSON by simdjson, sets by Abseil,
// files by zlib). It makes no Router: main.cpp shows that, and it is more than half of the time to compile.
#include <warmroute/trace/trace.hpp>
#include <warmroute/warmroute.hpp>

#include <cstdio>
#include <vector>

int main() {
  const auto policy = warmroute::policy_from_json(R"({"algorithm":"round_robin"})");
  if (!policy) return 1;
  const auto record = warmroute::trace::parse_mooncake_line(
      R"({"timestamp":1,"input_length":1000,"output_length":5,"hash_ids":[7,8]})");
  if (!record) return 2;
  const std::vector<warmroute::trace::TraceRecord> records = {*record, *record};
  if (warmroute::trace::prefix_bound(records).ratio() <= 0.0) return 3;
  if (warmroute::trace::TraceReader::open("no such file.gz")) return 4;
  std::printf("routed by %s\n", warmroute::policy_to_json(*policy).c_str());
  return 0;
}
