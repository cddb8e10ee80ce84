"""What requests use, cost and may use: a module of its own, for who only routes needs none of it.

    from warmroute import usage

    prices = usage.PriceTable.from_json({"m": {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6}})
    meter = usage.Meter()
    for chunk in body:                                 # as it passes to the client
        meter.feed(chunk)
    meter.finish()
    print(meter.usage, prices.cost(meter.report()).usd)

In the order of a request: KeySet (whose key), ask_for_usage and TokenEstimator (before it leaves), Limits (may it), Journal (begin),
Meter and UsageChunkFilter (its answer), PriceTable (its cost), Journal (end), Ledger (the sums). examples/python/06_usage.py does that.
Times are ints: now_ns of a monotonic clock for rates, leases and ages; wall_ns since 1970, UTC, for budgets, validity and events. Left
out, they are time.monotonic_ns() and time.time_ns(). Money is ints of 1e-12 USD (picos), or Decimal USD. None is unknown, never 0.
"""

from __future__ import annotations

from ._core import (
    USAGE_ANOMALIES,
    AnswerApi,
    CalendarUnit,
    Cost,
    CostLine,
    CostSource,
    HangupDrain,
    HangupMode,
    JournalFull,
    JournalKind,
    JournalSync,
    KeyDigestKind,
    KeyGrant,
    KeyVerdict,
    LimitDecision,
    LimitKind,
    LimitLeft,
    LimitOutcome,
    LimitProgress,
    LimitUnit,
    Meter,
    OrphanCharge,
    PriceMeter,
    PriceTable,
    PriceTier,
    StaleKeys,
    TokenEstimate,
    TokenEstimator,
    Usage,
    UsageAsk,
    UsageChunkFilter,
    UsageReport,
    UsageSource,
    ask_for_usage,
    estimate_missing,
    focus_header,
    read_usage,
    requested_tier,
    usd,
)
from ._usage_journal import (
    Journal,
    JournalCursor,
    JournalReader,
    JournalRecord,
    JournalStatistics,
    Ledger,
    LedgerRow,
    LedgerSums,
    UsageEvent,
)
from ._usage_keys import REVOKED_FOREVER, KeyDigest, KeyRecord, KeySet, key_digest
from ._usage_limits import CalendarWindow, DeniedBy, Limits, LimitSpec, LimitStatistics, Reservation

__all__ = [
    "REVOKED_FOREVER",
    "USAGE_ANOMALIES",
    "AnswerApi",
    "CalendarUnit",
    "CalendarWindow",
    "Cost",
    "CostLine",
    "CostSource",
    "DeniedBy",
    "HangupDrain",
    "HangupMode",
    "Journal",
    "JournalCursor",
    "JournalFull",
    "JournalKind",
    "JournalReader",
    "JournalRecord",
    "JournalStatistics",
    "JournalSync",
    "KeyDigest",
    "KeyDigestKind",
    "KeyGrant",
    "KeyRecord",
    "KeySet",
    "KeyVerdict",
    "Ledger",
    "LedgerRow",
    "LedgerSums",
    "LimitDecision",
    "LimitKind",
    "LimitLeft",
    "LimitOutcome",
    "LimitProgress",
    "LimitSpec",
    "LimitStatistics",
    "LimitUnit",
    "Limits",
    "Meter",
    "OrphanCharge",
    "PriceMeter",
    "PriceTable",
    "PriceTier",
    "Reservation",
    "StaleKeys",
    "TokenEstimate",
    "TokenEstimator",
    "Usage",
    "UsageAsk",
    "UsageChunkFilter",
    "UsageEvent",
    "UsageReport",
    "UsageSource",
    "ask_for_usage",
    "estimate_missing",
    "focus_header",
    "key_digest",
    "read_usage",
    "requested_tier",
    "usd",
]
