"""Statistics as typed, frozen values; `to_dict` gives the nested dict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ._core import Health, PrefixUnit


@dataclasses.dataclass(frozen=True)
class TtftStatistics:
    """A histogram. buckets: counts, not cumulative, of TTFT_BUCKETS_MS and one more for what is above."""

    buckets: tuple[int, ...]
    count: int
    sum_ns: int


@dataclasses.dataclass(frozen=True)
class LoadReading:
    """What one replica has to do: this router's own books, and what the engine said beyond them."""

    requests: int
    pending_tokens: int
    pending_ns: int
    context_tokens: int
    decoding: int
    foreign_requests: int
    foreign_waiting: int
    signals_at_ns: int


@dataclasses.dataclass(frozen=True)
class PrefixGains:
    """What an engine's own prefix-cache counters gained since the router first saw them, requests of others included.

    hits of queries, in units of `unit`. shared: they are of all ranks of its page together. at_ns: of the last reading.
    """

    queries: int
    hits: int
    unit: PrefixUnit
    shared: bool
    at_ns: int


@dataclasses.dataclass(frozen=True)
class ReplicaStatistics:
    """One replica. reported: its engine sends events, and nothing is believed beside them.

    input_tokens: of requests whose prefill ended there; matched_tokens: of those, believed to be in its cache when they were
    routed. engine_prefix: the same as its engine counts it; None until there were two readings. slowness: learned, 2 takes twice
    as long as replicas of equal declared rates.
    """

    replica: int
    name: str
    dp_rank: int
    pool: str
    health: Health
    load: LoadReading
    believed_blocks: int
    capacity_blocks: int
    reported: bool
    input_tokens: int
    matched_tokens: int
    slowness: float
    engine_prefix: PrefixGains | None


@dataclasses.dataclass(frozen=True)
class LearnedRates:
    """Replicas of equal declared rates. used: by decisions, by the names of Rates; learned: they are no longer the declared ones.

    samples: observed times.
    """

    declared: Mapping[str, int]
    used: Mapping[str, int]
    learned: bool
    samples: int


@dataclasses.dataclass(frozen=True)
class PoolStatistics:
    """One pool's index. bytes_per_token, output_tokens: learned means. shared_blocks: in the store that all replicas share.

    rates: by kind of hardware.
    """

    name: str
    blocks: int
    memberships: int
    bytes: int
    max_bytes: int
    bytes_per_token: float
    output_tokens: float
    shared_blocks: int
    rates: tuple[LearnedRates, ...]


@dataclasses.dataclass(frozen=True)
class RouterStatistics:
    """What a router has done so far. verdicts, reasons, outcomes: counts by name. Times in ns, sums over requests."""

    policy_version: int
    algorithm: str
    verdicts: Mapping[str, int]
    reasons: Mapping[str, int]
    outcomes: Mapping[str, int]
    late_calls: int
    placements_dropped: int
    clock_clamped: int
    scratch_allocated: int
    tickets_in_flight: int
    input_tokens: int
    predicted_cached_tokens: int
    reported_cached_tokens: int
    output_tokens: int
    cached_reports: int
    cached_exact: int
    observed_ttft: TtftStatistics
    predicted_ttft: TtftStatistics
    predicted_wait_ns: int
    predicted_prefill_ns: int
    saved_prefill_ns: int
    event_blocks_stored: int
    event_blocks_removed: int
    event_orphans: int
    pools: tuple[PoolStatistics, ...]
    replicas: tuple[ReplicaStatistics, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dicts, for JSON or a data frame."""
        return dataclasses.asdict(self)


def _replica_from(raw: dict[str, Any]) -> ReplicaStatistics:
    values = dict(raw)
    values["load"] = LoadReading(**raw["load"])
    if raw["engine_prefix"] is not None:
        values["engine_prefix"] = PrefixGains(**raw["engine_prefix"])
    return ReplicaStatistics(**values)


def _pool_from(raw: dict[str, Any]) -> PoolStatistics:
    values = dict(raw)
    values["rates"] = tuple(LearnedRates(**kind) for kind in raw["rates"])
    return PoolStatistics(**values)


def statistics_from(raw: dict[str, Any]) -> RouterStatistics:
    """From the extension's nested dict."""
    values = dict(raw)
    values["observed_ttft"] = TtftStatistics(**raw["observed_ttft"])
    values["predicted_ttft"] = TtftStatistics(**raw["predicted_ttft"])
    values["pools"] = tuple(_pool_from(pool) for pool in raw["pools"])
    values["replicas"] = tuple(_replica_from(replica) for replica in raw["replicas"])
    return RouterStatistics(**values)
