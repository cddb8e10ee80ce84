/* A trace through a router that records, and what another policy would have decided: reads a trace of any public form, routes its requests on four
   replicas, and plays the log again, once as it was and once with a knob turned.
   usage: 08_trace [trace] [log]    without a trace, a small one of its own */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <warmroute.h>

enum { kReplicas = 4 };
static const char kTrace[] =
    "{\"timestamp\": 0, \"input_length\": 1536, \"output_length\": 40, \"hash_ids\": [1, 2, 3]}\n"
    "{\"timestamp\": 300, \"input_length\": 1536, \"output_length\": 40, \"hash_ids\": [11, 12, 13]}\n"
    "{\"timestamp\": 500, \"input_length\": 2048, \"output_length\": 40, \"hash_ids\": [1, 2, 3, 4]}\n"
    "{\"timestamp\": 700, \"input_length\": 2048, \"output_length\": 40, \"hash_ids\": [11, 12, 13, 14]}\n"
    "{\"timestamp\": 900, \"input_length\": 1536, \"output_length\": 40, \"hash_ids\": [1, 2, 21]}\n";

static wr_str str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}

/* A router whose blocks are as long as the trace's, and its replicas. */
static wr_status set_up(wr_router* router, wr_error* err) {
  static const char* const kNames[kReplicas] = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"};
  wr_replica_spec gpu = WR_REPLICA_SPEC_INIT;
  wr_replica_id id;
  wr_policy policy;
  wr_status status;
  int i;
  policy.struct_size = sizeof policy;
  status = wr_policy_init(&policy, err);
  policy.block_size = 512;
  if (status == WR_STATUS_OK) status = wr_router_set_policy(router, &policy, err);
  for (i = 0; i < kReplicas && status == WR_STATUS_OK; ++i) {
    gpu.name = str(kNames[i]);
    status = wr_router_add_replica(router, &gpu, 0, &id, err);
  }
  return status;
}

/* Each prompt takes 50 ms here, and its answer 10 ms a token: this is no simulation (warmroute-simulate is), it fills a log. */
static wr_status serve(wr_router* router, const wr_trace_record* record, wr_error* err) {
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  wr_usage usage = WR_USAGE_INIT;
  const int64_t now_ns = record->arrival_us * 1000;
  wr_status status;
  request.block_hashes = record->blocks; /* an id stands for its block and all before it: as good as a hash */
  request.block_count = record->block_count;
  request.input_tokens = record->input_tokens;
  status = wr_router_route(router, &request, now_ns, &decision, err);
  if (status != WR_STATUS_OK) return status;
  printf("%8.3f s  %6" PRId64 " tokens to slot %u, %" PRId64 " of them cached: %s\n", (double)now_ns * 1e-9,
         record->input_tokens, (unsigned)decision.replica.slot, decision.cached_tokens[0],
         wr_reason_name(decision.reason));
  usage.output_tokens = record->output_tokens;
  status = wr_router_first_token(router, decision.ticket, now_ns + 50000000);
  if (status == WR_STATUS_OK)
    status = wr_router_finish(router, decision.ticket, &usage, now_ns + 50000000 + record->output_tokens * 10000000);
  return status;
}

static wr_status record_trace(wr_trace_reader* trace, const char* log, wr_error* err) {
  wr_router* router = NULL;
  wr_trace_record record = WR_TRACE_RECORD_INIT;
  uint32_t found = 1;
  wr_status status = wr_router_new_recording(NULL, str(log), NULL, &router, err);
  if (status == WR_STATUS_OK) status = set_up(router, err);
  while (status == WR_STATUS_OK) {
    status = wr_trace_next(trace, &record, &found, err);
    if (status != WR_STATUS_OK || !found) break;
    status = serve(router, &record, err);
  }
  wr_router_free(router); /* what was buffered is written */
  return status;
}

static wr_status play(const char* log, const char* change, wr_error* err) {
  wr_replay_options options = WR_REPLAY_OPTIONS_INIT;
  wr_replay replay = WR_REPLAY_INIT;
  wr_status status;
  options.change = str(change);
  status = wr_decision_log_replay(str(log), &options, &replay, err);
  if (status != WR_STATUS_OK) return status;
  printf("%s: %" PRIu64 " decisions, %" PRIu64 " other choices\n", *change != 0 ? change : "as it was",
         replay.decisions, replay.other_choices);
  if (replay.first_other_choice != WR_NO_RECORD) {
    printf("  first in record %" PRIu64 ": slot %u then, slot %u now\n", replay.first_other_choice,
           (unsigned)replay.recorded_replica.slot, (unsigned)replay.replayed_replica.slot);
  }
  return WR_STATUS_OK;
}

int main(int argc, char** argv) {
  const char* log = argc > 2 ? argv[2] : "08_trace.decisions";
  wr_error err = WR_ERROR_INIT;
  wr_trace_reader* trace = NULL;
  wr_status status =
      argc > 1 ? wr_trace_open(str(argv[1]), NULL, &trace, &err) : wr_trace_from_text(str(kTrace), NULL, &trace, &err);
  if (status == WR_STATUS_OK) status = record_trace(trace, log, &err);
  if (status == WR_STATUS_OK) status = play(log, "", &err);
  if (status == WR_STATUS_OK) status = play(log, "{\"algorithm\": \"round_robin\"}", &err);
  if (status != WR_STATUS_OK) fprintf(stderr, "%s: %s\n", wr_status_text(status), err.message);
  wr_trace_free(trace);
  return status != WR_STATUS_OK;
}
