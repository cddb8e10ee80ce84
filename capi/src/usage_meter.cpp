// What a request used: the meter, and what goes before and after it on the way.
#include <bit>
#include <memory>
#include <string>

#include "usage.hpp"
#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/request_side.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_meter {
  Meter meter;
  std::array<wr_other_model_usage, kMostOtherModels> others{};  // of the last report
};

struct wr_usage_chunk_filter {
  UsageChunkFilter filter;
  std::string out;
};

struct wr_token_estimator {
  TokenEstimator estimator;
};

namespace {

const wr_meter_options kMeterDefaults = WR_METER_OPTIONS_INIT;
const wr_usage_ask kAskDefaults = WR_USAGE_ASK_INIT;
const wr_estimate_options kEstimateDefaults = WR_ESTIMATE_OPTIONS_INIT;
const wr_token_estimate kTokenEstimateDefaults = WR_TOKEN_ESTIMATE_INIT;
const wr_hangup_policy kHangupDefaults = WR_HANGUP_POLICY_INIT;

constexpr std::string_view kNoMeter = "meter is NULL, or bytes have a size and no data";

wr_status read_meter_options(const wr_meter_options* given, MeterOptions& out, wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_meter_options> in(given, kMeterDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!readable(in->requested_tier)) return null_argument(err, "requested_tier has a size and no data");
  if (in->api > WR_ANSWER_LLAMACPP) return fail(err, Code::out_of_range, "api is not one of WR_ANSWER_...");
  if (in->input_includes_cache > WR_BELIEF_NO || in->output_includes_reasoning > WR_BELIEF_NO) {
    return fail(err, Code::out_of_range, "a belief is not one of WR_BELIEF_...");
  }
  out.api = static_cast<AnswerApi>(in->api);
  out.profile.input_includes_cache = static_cast<Belief>(in->input_includes_cache);
  out.profile.output_includes_reasoning = static_cast<Belief>(in->output_includes_reasoning);
  out.profile.ignore_total = in->ignore_total != 0;
  out.profile.trust_requested_tier = in->trust_requested_tier != 0;
  out.requested_tier = view(in->requested_tier);
  return WR_STATUS_OK;
}

}  // namespace

extern "C" {

const char* wr_anomaly_name(uint32_t anomaly) {
  if (!std::has_single_bit(anomaly)) return "unknown";
  return usage_anomaly_name(static_cast<std::size_t>(std::countr_zero(anomaly))).data();
}

wr_status wr_meter_new(const wr_meter_options* options, wr_meter** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  MeterOptions chosen;
  if (const wr_status bad = read_meter_options(options, chosen, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    *out = std::make_unique<wr_meter>(wr_meter{Meter(chosen), {}}).release();
    return WR_STATUS_OK;
  });
}

void wr_meter_free(wr_meter* meter) { delete meter; }

wr_status wr_meter_reset(wr_meter* meter, const wr_meter_options* options, wr_error* err) {
  if (meter == nullptr) return null_argument(err, kNoMeter);
  MeterOptions chosen;
  if (const wr_status bad = read_meter_options(options, chosen, err); bad != WR_STATUS_OK) return bad;
  meter->meter.reset(chosen);
  return WR_STATUS_OK;
}

wr_status wr_meter_feed(wr_meter* meter, wr_str bytes, uint32_t* first_token) {
  if (meter == nullptr || !readable(bytes)) return WR_STATUS_INVALID_ARGUMENT;
  const bool first = meter->meter.feed(view(bytes));
  if (first_token != nullptr) *first_token = first ? 1 : 0;
  return WR_STATUS_OK;
}

wr_status wr_meter_finish(wr_meter* meter) {
  if (meter == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  meter->meter.finish();
  return WR_STATUS_OK;
}

wr_status wr_meter_report(wr_meter* meter, wr_usage_report* out, wr_error* err) {
  if (meter == nullptr) return null_argument(err, kNoMeter);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const UsageReport r = meter->meter.report();
  const std::size_t count = std::min(r.other_models.size(), meter->others.size());
  for (std::size_t i = 0; i < count; ++i) {
    const OtherModelUsage& o = r.other_models[i];
    meter->others[i] = {str(o.model),
                        count_out(o.input_tokens),
                        count_out(o.cached_input_tokens),
                        count_out(o.cache_write_input_tokens),
                        count_out(o.output_tokens),
                        {}};
  }
  wr_usage_report told = WR_USAGE_REPORT_INIT;
  fill_report(told, r);
  told.other_models = count == 0 ? nullptr : meter->others.data();
  told.other_model_count = count;
  write(out, told);
  return WR_STATUS_OK;
}

uint32_t wr_meter_complete(const wr_meter* meter) { return meter != nullptr && meter->meter.complete() ? 1 : 0; }
uint64_t wr_meter_revision(const wr_meter* meter) { return meter == nullptr ? 0 : meter->meter.revision(); }
int64_t wr_meter_first_token_end(const wr_meter* meter) {
  if (meter == nullptr) return WR_UNKNOWN;
  const auto end = meter->meter.first_token_end();
  return end ? static_cast<std::int64_t>(*end) : WR_UNKNOWN;
}
uint64_t wr_meter_bytes(const wr_meter* meter) { return meter == nullptr ? 0 : meter->meter.bytes(); }
uint32_t wr_meter_is_stream(const wr_meter* meter) { return meter != nullptr && meter->meter.is_stream() ? 1 : 0; }

wr_status wr_ask_for_usage(wr_str body, wr_usage_ask* out, wr_error* err) {
  if (!readable(body)) return null_argument(err, "body has a size and no data");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const auto ask = ask_for_usage(view(body));
    if (!ask) return fail(err, ask.error());
    const BodySplice& splice = ask->splice;
    write(out, wr_usage_ask{0,
                            ask->stream ? 1u : 0u,
                            ask->asked ? 1u : 0u,
                            splice.empty() ? 0u : 1u,
                            splice.offset,
                            splice.removed,
                            str(splice.inserted),
                            {}});
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_ask_for_usage_body(wr_str body, const wr_usage_ask* ask, char* buf, size_t cap, size_t* needed,
                                wr_error* err) {
  if (!readable(body) || needed == nullptr) return null_argument(err, "body has no data, or needed is NULL");
  const Input<wr_usage_ask> in(ask, kAskDefaults);
  if (!in) return in.refuse(err, "ask is NULL");
  if (!readable(in->inserted)) return null_argument(err, "inserted has a size and no data");
  if (in->offset > body.size || in->removed > body.size - in->offset) {
    return fail(err, Code::out_of_range, "the change lies behind the end of the body: it is of another one");
  }
  return guard(err, [&] {
    return give(spliced(view(body), {in->offset, in->removed, view(in->inserted)}), 0, buf, cap, needed, err);
  });
}

wr_status wr_requested_tier(wr_str body, wr_str* out, wr_error* err) {
  if (!readable(body) || out == nullptr) return null_argument(err, "body has a size and no data, or out is NULL");
  *out = str(requested_tier(view(body)));
  return WR_STATUS_OK;
}

wr_status wr_usage_chunk_filter_new(wr_usage_chunk_filter** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_usage_chunk_filter>().release();
    return WR_STATUS_OK;
  });
}

void wr_usage_chunk_filter_free(wr_usage_chunk_filter* filter) { delete filter; }

wr_status wr_usage_chunk_filter_feed(wr_usage_chunk_filter* filter, wr_str bytes, wr_str* out, wr_error* err) {
  if (filter == nullptr || !readable(bytes) || out == nullptr) {
    return null_argument(err, "filter or out is NULL, or bytes have a size and no data");
  }
  return guard(err, [&] {
    filter->out.clear();
    filter->filter.feed(view(bytes), filter->out);
    *out = str(filter->out);
    return WR_STATUS_OK;
  });
}

wr_status wr_usage_chunk_filter_finish(wr_usage_chunk_filter* filter, wr_str* out, wr_error* err) {
  if (filter == nullptr || out == nullptr) return null_argument(err, "filter or out is NULL");
  return guard(err, [&] {
    filter->out.clear();
    filter->filter.finish(filter->out);
    *out = str(filter->out);
    return WR_STATUS_OK;
  });
}

uint32_t wr_usage_chunk_filter_removed(const wr_usage_chunk_filter* filter) {
  return filter != nullptr && filter->filter.removed() ? 1 : 0;
}
void wr_usage_chunk_filter_reset(wr_usage_chunk_filter* filter) {
  if (filter != nullptr) filter->filter.reset();
}

wr_status wr_token_estimator_new(wr_token_estimator** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_token_estimator>().release();
    return WR_STATUS_OK;
  });
}

void wr_token_estimator_free(wr_token_estimator* estimator) { delete estimator; }

wr_status wr_token_estimator_learn(wr_token_estimator* estimator, int64_t prompt_bytes, int64_t input_tokens) {
  if (estimator == nullptr) return WR_STATUS_INVALID_ARGUMENT;
  estimator->estimator.learn(prompt_bytes, input_tokens);
  return WR_STATUS_OK;
}

wr_status wr_token_estimator_estimate(const wr_token_estimator* estimator, const wr_estimate_options* options,
                                      wr_token_estimate* out, wr_error* err) {
  if (estimator == nullptr) return null_argument(err, "estimator is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const Input<wr_estimate_options> in(options, kEstimateDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  const TokenEstimate estimate =
      estimator->estimator.estimate(in->prompt_bytes, count_in(in->input_tokens), count_in(in->requested_output_tokens),
                                    {in->max_output_tokens, in->margin_percent});
  write(out, wr_token_estimate{0, 0, estimate.input_tokens, estimate.output_tokens, {}});
  return WR_STATUS_OK;
}

double wr_token_estimator_bytes_per_token(const wr_token_estimator* estimator) {
  return estimator == nullptr ? 0 : estimator->estimator.bytes_per_token();
}
void wr_token_estimator_set_bytes_per_token(wr_token_estimator* estimator, double bytes_per_token) {
  if (estimator != nullptr) estimator->estimator.set_bytes_per_token(bytes_per_token);
}

wr_status wr_estimate_missing(wr_usage_report* report, const wr_token_estimate* estimate, uint32_t* filled,
                              wr_error* err) {
  if (!writable(report)) return null_argument(err, kBadOutput);
  const Input<wr_token_estimate> in(estimate, kTokenEstimateDefaults);
  if (!in) return in.refuse(err, "estimate is NULL");
  UsageReport r;
  OtherModels others;
  if (const wr_status bad = read_report(report, r, others, err); bad != WR_STATUS_OK) return bad;
  const bool any = estimate_missing(r, {in->input_tokens, in->output_tokens});
  if (any) {
    wr_usage_report told = WR_USAGE_REPORT_INIT;
    fill_report(told, r);
    told.other_models = report->other_models;
    told.other_model_count = report->other_model_count;
    write(report, told);
  }
  if (filled != nullptr) *filled = any ? 1 : 0;
  return WR_STATUS_OK;
}

wr_status wr_hangup_read_on(const wr_hangup_policy* policy, int64_t left_ns, uint64_t bytes, uint32_t complete,
                            int64_t now_ns, uint32_t* read_on, int64_t* deadline_ns, wr_error* err) {
  if (read_on == nullptr) return null_argument(err, "read_on is NULL");
  const Input<wr_hangup_policy> in(policy, kHangupDefaults);
  if (!in) return in.refuse(err, "policy is NULL");
  if (in->mode > WR_HANGUP_DRAIN) return fail(err, Code::out_of_range, "mode is not one of WR_HANGUP_...");
  HangupDrain drain({static_cast<HangupMode>(in->mode), Nanos{in->max_drain_ns}, in->max_drain_bytes}, Nanos{left_ns});
  *read_on = drain.go_on(bytes, Nanos{now_ns}, complete != 0) ? 1 : 0;
  if (deadline_ns != nullptr) *deadline_ns = drain.deadline().value;
  return WR_STATUS_OK;
}

}  // extern "C"
