// What requests cost.
#include <memory>
#include <string>

#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_self_hosted_price kSelfHostedDefaults = WR_SELF_HOSTED_PRICE_INIT;
const wr_price_options kPriceDefaults = WR_PRICE_OPTIONS_INIT;
constexpr std::string_view kNoTable = "table is NULL, or a string has a size and no data";

constexpr std::string_view kSharedTable = "the table is in a slot: others price by it";

wr_status give_table(Result<PriceTable> table, wr_price_table** out, wr_error* err) {
  if (!table) return fail(err, table.error());
  *out = std::make_unique<wr_price_table>(std::make_shared<PriceTable>(std::move(*table))).release();
  return WR_STATUS_OK;
}

wr_status read_price_options(const wr_price_options* given, PriceOptions& out, wr_error* err) noexcept {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_price_options> in(given, kPriceDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!readable(in->provider)) return null_argument(err, "provider has a size and no data");
  if (in->tier > WR_PRICE_TIER_ULTRAFAST && in->tier != WR_PRICE_TIER_REPORTED) {
    return fail(err, Code::out_of_range, "tier is not one of WR_PRICE_TIER_...");
  }
  out.provider = view(in->provider);
  out.prefer_reported_cost = in->prefer_reported_cost != 0;
  out.off_peak = in->off_peak != 0;
  if (in->tier != WR_PRICE_TIER_REPORTED) out.tier = static_cast<PriceTier>(in->tier);
  return WR_STATUS_OK;
}

}  // namespace

void capi::let_go(wr_price_table* table) noexcept {
  if (table != nullptr && table->holders.fetch_sub(1) == 1) delete table;
}

extern "C" {

uint32_t wr_price_tier_of(wr_str service_tier) {
  return readable(service_tier) ? static_cast<std::uint32_t>(price_tier_of(view(service_tier))) : 0;
}
const char* wr_price_meter_name(uint32_t meter) {
  return meter < kPriceMeterCount ? price_meter_name(static_cast<PriceMeter>(meter)).data() : "unknown";
}

wr_status wr_price_table_new(wr_price_table** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_price_table>(std::make_shared<PriceTable>()).release();
    return WR_STATUS_OK;
  });
}

wr_status wr_price_table_from_json(wr_str json, wr_price_table** out, wr_error* err) {
  if (out == nullptr || !readable(json)) return null_argument(err, "out is NULL, or json has a size and no data");
  return guard(err, [&] { return give_table(PriceTable::from_json(view(json)), out, err); });
}

wr_status wr_price_table_load(wr_str path, wr_price_table** out, wr_error* err) {
  if (out == nullptr || !readable(path)) return null_argument(err, "out is NULL, or path has a size and no data");
  return guard(err, [&] { return give_table(PriceTable::load(std::string(view(path))), out, err); });
}

void wr_price_table_free(wr_price_table* table) { let_go(table); }

wr_status wr_price_table_override(wr_price_table* table, wr_str json, wr_error* err) {
  if (table == nullptr || !readable(json)) return null_argument(err, kNoTable);
  if (table->own == nullptr) return fail(err, Code::unsupported, kSharedTable);
  return guard(err, [&] { return done(table->own->override_with(view(json)), err); });
}

wr_status wr_price_table_set_alias(wr_price_table* table, wr_str alias, wr_str model, wr_error* err) {
  if (table == nullptr || !readable(alias) || !readable(model)) return null_argument(err, kNoTable);
  if (table->own == nullptr) return fail(err, Code::unsupported, kSharedTable);
  return guard(err, [&] { return done(table->own->set_alias(view(alias), view(model)), err); });
}

wr_status wr_price_table_set_self_hosted(wr_price_table* table, const wr_self_hosted_price* price, wr_error* err) {
  if (table == nullptr) return null_argument(err, kNoTable);
  if (table->own == nullptr) return fail(err, Code::unsupported, kSharedTable);
  const Input<wr_self_hosted_price> in(price, kSelfHostedDefaults);
  if (!in) return in.refuse(err, "price is NULL");
  if (!readable(in->model)) return null_argument(err, kNoTable);
  return guard(err, [&] {
    const SelfHostedPrice own{std::string(view(in->model)), in->replica_hour_picos,       in->input_tokens_per_second,
                              in->output_tokens_per_second, in->cached_tokens_per_second, in->utilization};
    return done(table->own->set_self_hosted(own), err);
  });
}

wr_status wr_price_table_find(const wr_price_table* table, wr_str model, wr_str provider, wr_str* key, wr_error* err) {
  if (table == nullptr || key == nullptr || !readable(model) || !readable(provider)) {
    return null_argument(err, kNoTable);
  }
  return guard(err, [&] {
    const auto found = table->table->find(view(model), view(provider));
    if (!found) return fail(err, Code::not_found, "the table has no price under that name");
    *key = str(*found);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_price_table_cost(const wr_price_table* table, const wr_usage_report* report, wr_str model,
                              const wr_price_options* options, wr_cost* out, wr_error* err) {
  if (table == nullptr || !readable(model)) return null_argument(err, kNoTable);
  if (!writable(out)) return null_argument(err, kBadOutput);
  PriceOptions chosen;
  if (const wr_status bad = read_price_options(options, chosen, err); bad != WR_STATUS_OK) return bad;
  UsageReport r;
  OtherModels others;
  if (const wr_status bad = read_report(report, r, others, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    wr_cost told = WR_COST_INIT;
    fill_cost(told, table->table->cost(r, view(model), chosen));
    write(out, told);
    return WR_STATUS_OK;
  });
}

size_t wr_price_table_size(const wr_price_table* table) { return table == nullptr ? 0 : table->table->size(); }
size_t wr_price_table_skipped_rates(const wr_price_table* table) {
  return table == nullptr ? 0 : table->table->skipped_rates();
}

wr_status wr_price_table_version(const wr_price_table* table, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (table == nullptr || needed == nullptr) return null_argument(err, "table or needed is NULL");
  return guard(err, [&] { return give(table->table->version(), 1, buf, cap, needed, err); });
}

}  // extern "C"
