// warmroute-decisions: a log of decisions as JSON lines, or played again on a fresh router, with other knobs if wanted.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "common/flags.hpp"
#include "warmroute/trace/decision_log.hpp"

ABSL_FLAG(bool, replay, false, "decide again and compare, instead of printing");
ABSL_FLAG(std::string, change, "",
          "with --replay: members of a policy's JSON form to put over every policy, as in '{\"gamma\":0.1}'");
ABSL_FLAG(bool, blocks, false, "print every hash (keyed, as in the log), not only how many");
ABSL_FLAG(std::uint64_t, limit, 0, "the first n records; 0: all");

namespace warmroute::decisions {
namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "warmroute-decisions: %s\n", message.c_str());
  return 2;
}

int print(trace::DecisionLogReader& log) {
  const std::uint64_t limit = absl::GetFlag(FLAGS_limit);
  const bool blocks = absl::GetFlag(FLAGS_blocks);
  trace::DecisionRecord record;
  std::string line;
  for (std::uint64_t i = 0; limit == 0 || i < limit; ++i) {
    const auto more = log.next(record);
    if (!more) return fail(more.error().message);
    if (!*more) break;
    line.clear();
    trace::append_json_line(record, line, blocks);
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return fail("cannot write on");
  }
  if (log.torn_bytes() > 0)
    std::fprintf(stderr, "%llu bytes at the end are no whole record\n",
                 static_cast<unsigned long long>(log.torn_bytes()));
  return 0;
}

void show(const char* what, const trace::DecisionDifference& d) {
  std::printf("%s: record %llu, %s, now %lld ns\n", what, static_cast<unsigned long long>(d.record),
              std::string(trace::decision_call_name(d.call)).c_str(), static_cast<long long>(d.now.value));
  if (d.call != trace::DecisionCall::route) return;
  for (const auto& [name, decision] : {std::pair{"recorded", &d.recorded}, std::pair{"replayed", &d.replayed}}) {
    std::printf(
        "  %s: %s, %s, replica %u.%u, cached %lld of %lld tokens, wait %.3f ms\n", name,
        std::string(verdict_name(decision->verdict)).c_str(), std::string(reason_name(decision->reason)).c_str(),
        decision->replica.slot, decision->replica.generation, static_cast<long long>(decision->total_cached().value),
        static_cast<long long>(decision->input_tokens.value), static_cast<double>(decision->expected_wait.value) / 1e6);
  }
}

int replay(trace::DecisionLogReader& log) {
  trace::DecisionReplayOptions options;
  options.change = absl::GetFlag(FLAGS_change);
  options.max_records = absl::GetFlag(FLAGS_limit);
  const auto result = trace::replay_decisions(log, options);
  if (!result) return fail(result.error().message);
  std::printf("%llu records, %llu decisions: %llu differ, %llu of them choose otherwise; %llu other results differ\n",
              static_cast<unsigned long long>(result->records), static_cast<unsigned long long>(result->decisions),
              static_cast<unsigned long long>(result->differing),
              static_cast<unsigned long long>(result->other_choices),
              static_cast<unsigned long long>(result->other_results));
  if (result->torn_bytes > 0)
    std::printf("%llu bytes at the end are no whole record\n", static_cast<unsigned long long>(result->torn_bytes));
  if (result->first_difference) show("first difference", *result->first_difference);
  if (result->first_other_choice) show("first other choice", *result->first_other_choice);
  return result->identical() ? 0 : 1;
}

}  // namespace
}  // namespace warmroute::decisions

int main(int argc, char** argv) {
  const auto files = warmroute::examples::parse_flags(
      argc, argv,
      "Prints a log of decisions as JSON lines, or decides again; exits with 1 when a decision differs.\n"
      "  warmroute-decisions gateway.decisions | head\n"
      "  warmroute-decisions --replay gateway.decisions\n"
      "  warmroute-decisions --replay --change '{\"gamma\":0.1}' gateway.decisions");
  if (files.size() != 1) return warmroute::decisions::fail("name one file; see --help");
  auto log = warmroute::trace::DecisionLogReader::open(files[0]);
  if (!log) return warmroute::decisions::fail(log.error().message);
  return absl::GetFlag(FLAGS_replay) ? warmroute::decisions::replay(*log) : warmroute::decisions::print(*log);
}
