// The enums of usage/ by name, as enum_names.hpp has the others.
#pragma once

#include "common.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/usage/journal.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/request_side.hpp"
#include "warmroute/usage/usage.hpp"

namespace warmroute::python {

WARMROUTE_ENUM_NAMES(AnswerApi, 9, "automatic", "openai", "responses", "embeddings", "messages", "gemini", "bedrock",
                     "cohere", "llamacpp");
WARMROUTE_ENUM_NAMES(CalendarUnit, 6, "minute", "hour", "day", "week", "month", "year");
WARMROUTE_ENUM_NAMES(CostSource, 4, "unknown", "table", "self_hosted", "reported");
WARMROUTE_ENUM_NAMES(HangupMode, 2, "cut", "drain");
WARMROUTE_ENUM_NAMES(JournalFull, 2, "refuse", "serve_unbilled");
WARMROUTE_ENUM_NAMES(JournalSync, 3, "none", "batched", "each");
WARMROUTE_ENUM_NAMES(KeyDigestKind, 3, "hmac_sha256", "sha256_secret", "sha256_key");
WARMROUTE_ENUM_NAMES(KeyVerdict, 10, "accepted", "malformed", "unknown", "wrong_secret", "not_yet_valid", "expired",
                     "revoked", "stale_set", "no_pepper", "no_digest");
WARMROUTE_ENUM_NAMES(LimitKind, 3, "rate", "budget", "concurrency");
WARMROUTE_ENUM_NAMES(LimitOutcome, 7, "allowed", "rate_exceeded", "too_many_at_once", "budget_exceeded",
                     "larger_than_limit", "no_room", "invalid");
WARMROUTE_ENUM_NAMES(LimitProgress, 3, "go_on", "stop", "stale");
WARMROUTE_ENUM_NAMES(LimitUnit, kLimitUnitCount, "requests", "input_tokens", "output_tokens", "total_tokens",
                     "cost_nanos");
WARMROUTE_ENUM_NAMES(OnExpired, 3, "serve", "deny_new_keys", "deny_all");
WARMROUTE_ENUM_NAMES(OrphanCharge, 2, "keep", "refund");
WARMROUTE_ENUM_NAMES(PriceMeter, kPriceMeterCount, "input", "cached_input", "cache_write", "cache_write_1h",
                     "cache_write_12h", "audio_input", "cached_audio_input", "image_input", "cached_image_input",
                     "video_input", "output", "reasoning_output", "audio_output", "image_output", "web_search",
                     "other_model");
WARMROUTE_ENUM_NAMES(PriceTier, 6, "standard", "priority", "flex", "batch", "balanced", "ultrafast");
WARMROUTE_ENUM_NAMES(StaleKeys, 3, "keep_serving", "refuse", "refuse_new");
WARMROUTE_ENUM_NAMES(UsageSource, 4, "none", "provider", "timings", "estimate");

}  // namespace warmroute::python
