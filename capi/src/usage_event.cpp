// Reports, costs and events between C and C++.
#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_usage_report kReportDefaults = WR_USAGE_REPORT_INIT;
const wr_usage_event kEventDefaults = WR_USAGE_EVENT_INIT;
const wr_cost kCostDefaults = WR_COST_INIT;

// Each count once, for both directions.
template <class Report, class Counts, class Each>
void each_count(Report& r, Counts& u, Each&& each) noexcept {
  each(r.input_tokens, u.input_tokens);
  each(r.cached_input_tokens, u.cached_input_tokens);
  each(r.cache_write_input_tokens, u.cache_write_input_tokens);
  each(r.output_tokens, u.output_tokens);
  each(r.reasoning_output_tokens, u.reasoning_output_tokens);
  each(r.cache_write_5m_tokens, u.cache_write_5m_tokens);
  each(r.cache_write_30m_tokens, u.cache_write_30m_tokens);
  each(r.cache_write_1h_tokens, u.cache_write_1h_tokens);
  each(r.cache_write_12h_tokens, u.cache_write_12h_tokens);
  each(r.text_input_tokens, u.text_input_tokens);
  each(r.audio_input_tokens, u.audio_input_tokens);
  each(r.image_input_tokens, u.image_input_tokens);
  each(r.video_input_tokens, u.video_input_tokens);
  each(r.cached_text_input_tokens, u.cached_text_input_tokens);
  each(r.cached_audio_input_tokens, u.cached_audio_input_tokens);
  each(r.cached_image_input_tokens, u.cached_image_input_tokens);
  each(r.cached_video_input_tokens, u.cached_video_input_tokens);
  each(r.text_output_tokens, u.text_output_tokens);
  each(r.audio_output_tokens, u.audio_output_tokens);
  each(r.image_output_tokens, u.image_output_tokens);
  each(r.tool_use_input_tokens, u.tool_use_input_tokens);
  each(r.accepted_prediction_tokens, u.accepted_prediction_tokens);
  each(r.rejected_prediction_tokens, u.rejected_prediction_tokens);
  each(r.processed_input_tokens, u.processed_input_tokens);
  each(r.processed_output_tokens, u.processed_output_tokens);
  each(r.unattributed_tokens, u.unattributed_tokens);
  each(r.context_input_tokens, u.context_input_tokens);
  each(r.web_search_requests, u.web_search_requests);
  each(r.web_fetch_requests, u.web_fetch_requests);
  each(r.reported_cost_picos, u.reported_cost_picos);
}

bool strings_readable(const wr_usage_report& r) noexcept {
  return readable(r.finish_reason) && readable(r.service_tier) && readable(r.speed) &&
         readable(r.inference_geography) && readable(r.model) && readable(r.response_id);
}
bool strings_readable(const wr_usage_event& e) noexcept {
  return readable(e.operation_id) && readable(e.key_id) && readable(e.team_id) && readable(e.provider) &&
         readable(e.operation) && readable(e.request_model) && readable(e.replica_id) && readable(e.class_id) &&
         readable(e.price_table_version);
}

wr_status read_event_cost(const wr_cost* given, EventInput& out, wr_error* err) noexcept {
  const Input<wr_cost> in(given, kCostDefaults);
  if (!in) return in.refuse(err, "cost is NULL");
  if (!readable(in->price_key)) return null_argument(err, "price_key has a size and no data");
  if (in->source > WR_COST_SOURCE_REPORTED) return fail(err, Code::out_of_range, "source is not one of WR_COST_...");
  if (in->line_count > out.bill.size()) return fail(err, Code::out_of_range, "line_count: more lines than meters");
  for (std::size_t i = 0; i < in->line_count; ++i) {
    const wr_cost_line& line = in->lines[i];
    if (line.meter >= kPriceMeterCount)
      return fail(err, Code::out_of_range, "a line's meter is not WR_PRICE_METER_...");
    out.bill[i] = {static_cast<PriceMeter>(line.meter), line.quantity, line.rate_femtos, line.cost_picos};
  }
  out.event.cost_picos = count_in(in->picos);
  out.event.cost_source = static_cast<CostSource>(in->source);
  out.event.price_key = view(in->price_key);
  out.event.bill = {out.bill.data(), in->line_count};
  return WR_STATUS_OK;
}

}  // namespace

void capi::read_counts(const wr_usage_report& r, Usage& out) noexcept {
  each_count(r, out, [](const std::int64_t& from, UsageCount& to) { to = count_in(from); });
}
void capi::fill_counts(wr_usage_report& out, const Usage& usage) noexcept {
  each_count(out, usage, [](std::int64_t& to, const UsageCount& from) { to = count_out(from); });
}

void capi::fill_report(wr_usage_report& out, const UsageReport& r) noexcept {
  out.complete = r.complete ? 1 : 0;
  out.error = r.error ? 1 : 0;
  out.source = static_cast<std::uint32_t>(r.source);
  out.anomalies = r.anomalies.bits;
  out.output_events = r.output_events;
  fill_counts(out, r.usage);
  out.finish_reason = str(r.finish_reason);
  out.service_tier = str(r.service_tier);
  out.speed = str(r.speed);
  out.inference_geography = str(r.inference_geography);
  out.model = str(r.model);
  out.response_id = str(r.response_id);
}

wr_status capi::read_report(const wr_usage_report* given, UsageReport& out, OtherModels& others,
                            wr_error* err) noexcept {
  const Input<wr_usage_report> in(given, kReportDefaults);
  if (!in) return in.refuse(err, "report is NULL");
  if (!strings_readable(*in) || !readable(in->other_models, in->other_model_count)) {
    return null_argument(err, "a string or list of the report has a size and no data");
  }
  if (in->source > WR_USAGE_SOURCE_ESTIMATE) {
    return fail(err, Code::out_of_range, "source is not one of WR_USAGE_SOURCE_...");
  }
  if (in->other_model_count > others.size()) return fail(err, Code::out_of_range, "more than 16 other models");
  for (std::size_t i = 0; i < in->other_model_count; ++i) {
    const wr_other_model_usage& o = in->other_models[i];
    if (!readable(o.model)) return null_argument(err, "another model's name has a size and no data");
    others[i] = {view(o.model), count_in(o.input_tokens), count_in(o.cached_input_tokens),
                 count_in(o.cache_write_input_tokens), count_in(o.output_tokens)};
  }
  read_counts(*in, out.usage);
  out.complete = in->complete != 0;
  out.error = in->error != 0;
  out.source = static_cast<UsageSource>(in->source);
  out.anomalies.bits = in->anomalies;
  out.output_events = in->output_events;
  out.finish_reason = view(in->finish_reason);
  out.service_tier = view(in->service_tier);
  out.speed = view(in->speed);
  out.inference_geography = view(in->inference_geography);
  out.model = view(in->model);
  out.response_id = view(in->response_id);
  out.other_models = {others.data(), in->other_model_count};
  return WR_STATUS_OK;
}

wr_status EventInput::read(const wr_usage_event* given, wr_error* err) noexcept {
  const Input<wr_usage_event> in(given, kEventDefaults);
  if (!in) return in.refuse(err, "event is NULL");
  if (!strings_readable(*in)) return null_argument(err, "a string of the event has a size and no data");
  event.operation_id = view(in->operation_id);
  event.attempt = in->attempt;
  event.start_time = WallNanos{in->start_wall_ns};
  event.end_time = WallNanos{in->end_wall_ns};
  event.key_id = view(in->key_id);
  event.team_id = view(in->team_id);
  event.provider = view(in->provider);
  event.operation = view(in->operation);
  event.request_model = view(in->request_model);
  event.replica_id = view(in->replica_id);
  event.class_id = view(in->class_id);
  event.price_table_version = view(in->price_table_version);
  if (in->report != nullptr) {
    UsageReport r;
    OtherModels others;
    if (const wr_status bad = read_report(in->report, r, others, err); bad != WR_STATUS_OK) return bad;
    event.usage = r.usage;
    event.complete = r.complete;
    event.error = r.error;
    event.source = r.source;
    event.anomalies = r.anomalies;
    event.finish_reason = r.finish_reason;
    event.service_tier = r.service_tier;
    event.response_model = r.model;
    event.response_id = r.response_id;
  }
  return in->cost == nullptr ? WR_STATUS_OK : read_event_cost(in->cost, *this, err);
}

void capi::fill_cost(wr_cost& out, const Cost& cost) noexcept {
  static_assert(WR_COST_LINE_SLOTS >= kPriceMeterCount);
  out.source = static_cast<std::uint32_t>(cost.source);
  out.picos = count_out(cost.picos);
  out.price_key = str(cost.price_key);
  out.threshold_tokens = cost.threshold_tokens;
  out.tier_fell_back = cost.tier_fell_back ? 1 : 0;
  out.partial = cost.partial ? 1 : 0;
  out.line_count = cost.line_count;
  out.reserved0 = 0;
  for (std::size_t i = 0; i < cost.line_count; ++i) {
    const CostLine& line = cost.lines[i];
    out.lines[i] = {static_cast<std::uint32_t>(line.meter), 0, line.quantity, line.rate_femtos, line.cost_picos};
  }
}

void capi::fill_event(const UsageEvent& e, wr_usage_event& out, wr_usage_report& report, wr_cost& cost_out) noexcept {
  UsageReport r;
  r.usage = e.usage;
  r.complete = e.complete;
  r.error = e.error;
  r.source = e.source;
  r.anomalies = e.anomalies;
  r.finish_reason = e.finish_reason;
  r.service_tier = e.service_tier;
  r.model = e.response_model;
  r.response_id = e.response_id;
  fill_report(report, r);

  Cost cost;
  cost.picos = e.cost_picos;
  cost.source = e.cost_source;
  cost.price_key = e.price_key;
  cost.line_count = static_cast<std::uint8_t>(std::min(e.bill.size(), cost.lines.size()));
  std::copy_n(e.bill.begin(), cost.line_count, cost.lines.begin());
  fill_cost(cost_out, cost);

  out.attempt = e.attempt;
  out.operation_id = str(e.operation_id);
  out.start_wall_ns = e.start_time.value;
  out.end_wall_ns = e.end_time.value;
  out.key_id = str(e.key_id);
  out.team_id = str(e.team_id);
  out.provider = str(e.provider);
  out.operation = str(e.operation);
  out.request_model = str(e.request_model);
  out.replica_id = str(e.replica_id);
  out.class_id = str(e.class_id);
  out.report = &report;
  out.cost = &cost_out;
  out.price_table_version = str(e.price_table_version);
}
