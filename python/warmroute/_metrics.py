"""What engines say of themselves on their /metrics pages: read by call (EngineMetrics), or asked for by a thread (MetricsPoller)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from ._background import close_at_exit
from ._core import EngineCounters as CoreCounters
from ._core import EngineMetrics as CoreMetrics
from ._core import LogLevel, PrefixUnit
from ._core import MetricsPoller as CorePoller
from ._core import Router as CoreRouter

if TYPE_CHECKING:
    from typing_extensions import Self

Table = Union[str, Mapping[str, Any]]
"""Metrics' names of one kind of engine, as JSON or as the dict of it; see builtin_engine_tables."""

_SIGNALS = ("running", "waiting", "kv_usage", "block_tokens", "block_count", "prefix_queries", "prefix_hits", "waiting_tokens")


@dataclasses.dataclass(frozen=True)
class RankReplica:
    """Whose signals a page's rank are. dp_rank None: the only rank of the page, whatever its label. model '': any."""

    replica: int
    dp_rank: int | None = None
    model: str = ""


Replicas = Union[int, Mapping[int, int], Sequence[RankReplica]]
"""Whose a page is: one replica, or replicas by data-parallel rank, or RankReplicas."""


@dataclasses.dataclass(frozen=True)
class EngineHistogram:
    """buckets: (upper bound in seconds, cumulative count); the last bound is infinite."""

    buckets: tuple[tuple[float, int], ...]
    sum_s: float | None
    count: int


@dataclasses.dataclass(frozen=True)
class EngineRank:
    """What a page says of one data-parallel rank. None: unknown, which is never 0. Counters are since the engine's start.

    waiting_tokens: prompt tokens still to compute, uncached ones of queue and batch.
    """

    dp_rank: int | None
    model: str
    waiting: int | None
    running: int | None
    waiting_tokens: int | None
    kv_usage: float | None
    prefix_hits: int | None
    prefix_queries: int | None
    prefix_unit: PrefixUnit
    prefix_hit_rate: float | None
    block_tokens: int | None
    block_count: int | None
    lora_running: tuple[str, ...] | None
    lora_waiting: tuple[str, ...] | None
    lora_max: int | None
    ttft: EngineHistogram | None

    def signals(self) -> dict[str, float]:
        """The known ones by the names that Router.signal takes."""
        return {name: value for name in _SIGNALS if (value := getattr(self, name)) is not None}


@dataclasses.dataclass(frozen=True)
class EngineReading:
    """One page. ranks: by (model, dp_rank). shared: series that name no rank, beside several ranks: nobody can say whose they are."""

    engine: str
    ranks: tuple[EngineRank, ...]
    shared: EngineRank | None
    skipped_lines: int

    def signals(self) -> dict[int | None, dict[str, float]]:
        """Each rank's, by its dp_rank. Of several models on one page, use `ranks`."""
        return {rank.dp_rank: rank.signals() for rank in self.ranks}


@dataclasses.dataclass(frozen=True)
class AppliedReading:
    """signals: taken by the router. refused: by it, e.g. of a replica that was removed. unmatched_ranks: with no replica, or several.

    shared_counters: replicas that got prefix-cache counters which are of their whole page.
    """

    signals: int
    refused: int
    unmatched_ranks: int
    shared_counters: int


@dataclasses.dataclass(frozen=True)
class EngineDelta:
    """What one rank's counters gained since the page before. None: unknown now, or not known before.

    restarted: a counter fell, so the engine began anew: its cache is empty (Router.clear_cache).
    """

    dp_rank: int | None
    model: str
    shared: bool
    restarted: bool
    prefix_hits: int | None
    prefix_queries: int | None
    first_tokens: int | None


def _json_of(tables: Iterable[Table]) -> list[str]:
    return [table if isinstance(table, str) else json.dumps(dict(table)) for table in tables]


def _rank(raw: dict[str, Any]) -> EngineRank:
    values = dict(raw)
    if raw["ttft"] is not None:
        values["ttft"] = EngineHistogram(**raw["ttft"])
    return EngineRank(**values)


def _rows(replicas: Replicas) -> list[tuple[int, int | None, str]]:
    if isinstance(replicas, int):
        return [(replicas, None, "")]
    if isinstance(replicas, Sequence):
        return [(row.replica, row.dp_rank, row.model) for row in replicas]
    return [(replica, rank, "") for rank, replica in replicas.items()]


class EngineMetrics(CoreMetrics):
    """Reads metrics pages of vLLM, SGLang, TensorRT-LLM, Triton, TGI and llama.cpp (Prometheus text), one after another, in scratch memory.

        metrics = warmroute.EngineMetrics()
        print(metrics.read(page).signals())            # {0: {'running': 5, 'waiting': 2, 'kv_usage': 0.25, ...}}
        metrics.apply(router, replica)                 # of the page that was read last
    """

    def __init__(self, *, tables: Iterable[Table] = ()) -> None:
        """tables: beside the built-in ones, or instead of those of the same engine. errors: Error invalid_json, invalid_argument."""
        super().__init__(tables=_json_of(tables))

    def read(self, page: bytes | bytearray | memoryview | str, engine: str = "") -> EngineReading:
        """engine: the table to read by ("vllm", "sglang", ...); '': the one whose metrics are on the page.

        errors: Error malformed (HTML, JSON, compressed), not_found (no known metrics), invalid_argument (of several engines and
        none named; no such table), too_large. Nothing is left to apply then.
        """
        raw = self._read(page, engine)
        shared = raw["shared"]
        ranks = tuple(_rank(rank) for rank in raw["ranks"])
        return EngineReading(raw["engine"], ranks, None if shared is None else _rank(shared), raw["skipped_lines"])

    def apply(self, router: CoreRouter, replicas: Replicas, now_ns: int | None = None) -> AppliedReading:
        """Gives each rank's known values to its replica, as of now_ns: of the scrape. What a replica refuses is counted."""
        return AppliedReading(**self._apply(router, _rows(replicas), now_ns))


class EngineCounters(CoreCounters):
    """Remembers one target's counters between two pages."""

    def update(self, metrics: EngineMetrics) -> list[EngineDelta]:
        """With the page that `metrics` read last: one delta for each rank that was seen before."""
        return [EngineDelta(**raw) for raw in self._update(metrics)]


def read_engine_metrics(
    page: bytes | bytearray | memoryview | str, engine: str = "", *, tables: Iterable[Table] = ()
) -> EngineReading:
    """One page, once; for many keep an EngineMetrics. errors: as EngineMetrics.read."""
    return EngineMetrics(tables=tables).read(page, engine)


@dataclasses.dataclass(frozen=True)
class MetricsPage:
    """A page that came whole with status 200. at_ns: when it was there. took_ns: from the request on."""

    target: str
    body: bytes
    at_ns: int
    took_ns: int


@dataclasses.dataclass(frozen=True)
class MetricsTargetStatus:
    """One target of a poller. age_ns: since the last success, None = never. last_error stays after a success.

    up: the last scrape succeeded. restarts: how often its counters fell. skipped_lines, unmatched_ranks: of the last page.
    """

    name: str
    url: str
    engine: str
    up: bool
    scrapes: int
    failures: int
    failures_in_row: int
    connects: int
    restarts: int
    last_error: str
    age_ns: int | None
    last_duration_ns: int
    last_bytes: int
    skipped_lines: int
    unmatched_ranks: int
    signals: int


class MetricsPoller(CorePoller):
    """Asks model servers for their metrics (GET, HTTP/1.1, unencrypted) again and again, on a thread of its own, and gives a router what they say.

    Routing never waits for it; a slow or broken target delays no other. A failed scrape changes no signal: it grows old, which
    the policy's signals_max_age_ns judges. Without a router, pages go to `page` alone. Use it as a context manager, or `close`
    it; the interpreter's end does.

        with warmroute.MetricsPoller(router) as poller:
            poller.add("http://10.0.0.1:8000", replica)              # or {0: rank_0, 1: rank_1}
            print(poller.status("http://10.0.0.1:8000").up)
    """

    def __init__(
        self,
        router: CoreRouter | None = None,
        *,
        page: Callable[[MetricsPage], object] | None = None,
        log: Callable[[LogLevel, str], object] | None = None,
        clock: Callable[[], int] | None = None,
        interval_ns: int = 500_000_000,
        jitter_percent: int = 10,
        timeout_ns: int = 2_000_000_000,
        backoff_to_ns: int = 5_000_000_000,
        max_bytes: int = 1 << 24,
        keep_alive: bool = True,
        seed: int = 1,
        tables: Iterable[Table] = (),
    ) -> None:
        """page, log, clock: called on the poller's thread; page before its signals are applied. It may call everything but close.

        clock: left out, the router's, or time.monotonic_ns(). interval_ns: several gateways want 100 ms.
        errors: Error invalid_argument (every fault named), io.
        """

        def paged(raw: dict[str, Any]) -> object:
            return None if page is None else page(MetricsPage(**raw))

        super().__init__(
            router,
            page=None if page is None else paged,
            log=log,
            clock=clock,
            interval_ns=interval_ns,
            jitter_percent=jitter_percent,
            timeout_ns=timeout_ns,
            backoff_to_ns=backoff_to_ns,
            max_bytes=max_bytes,
            keep_alive=keep_alive,
            seed=seed,
            tables=_json_of(tables),
        )
        close_at_exit(self)

    def add(self, url: str, replicas: Replicas = (), *, name: str = "", engine: str = "", clear_on_restart: bool = True) -> None:
        """Begins to ask; the first scrape comes within the interval, and within a second.

        url: "[http://]host[:port][/path]", without path /metrics. name: default the url. clear_on_restart: when the page's
        counters fall, what is believed of its replicas' caches goes; not where KV events come, too. A server with two pages is two
        targets: SGLang's /metrics, and /v1/loads?include=core&format=prometheus for the prompt tokens that wait.
        errors: Error invalid_argument (url), already_exists (name).
        """
        self._add(url, _rows(replicas), name, engine, clear_on_restart)

    def status(self, name: str) -> MetricsTargetStatus:
        """errors: Error not_found."""
        return MetricsTargetStatus(**self._status(name))

    def statuses(self) -> list[MetricsTargetStatus]:
        """Those of all targets, in the order of add."""
        return [MetricsTargetStatus(**raw) for raw in self._statuses()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
