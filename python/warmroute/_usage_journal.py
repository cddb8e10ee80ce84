"""Events, the journal that keeps them, and the ledger that sums them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ._core import Cost, JournalKind, PriceTable, Usage, UsageReport, UsageSource, record_focus_rows, record_json_line, usd
from ._core import Journal as CoreJournal
from ._core import JournalReader as CoreReader
from ._core import Ledger as CoreLedger

if TYPE_CHECKING:
    from typing_extensions import Self

Path = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class UsageEvent:
    """One attempt of one operation: retries and fallbacks are attempts with usage of their own under one operation_id.

    Times are wall_ns. provider, operation: OpenTelemetry's gen_ai.provider.name and gen_ai.operation.name. usage: of a begin, the
    estimate. cost None: not priced. Text that is not known is ''.
    """

    operation_id: str = ""
    attempt: int = 0
    start_time_ns: int = 0
    end_time_ns: int = 0
    key_id: str = ""
    team_id: str = ""
    provider: str = ""
    operation: str = ""
    request_model: str = ""
    response_model: str = ""
    response_id: str = ""
    replica_id: str = ""
    class_id: str = ""
    usage: Usage = Usage()
    complete: bool = False
    error: bool = False
    source: UsageSource | str = UsageSource.none
    anomalies: tuple[str, ...] = ()
    finish_reason: str = ""
    service_tier: str = ""
    cost: Cost | None = None
    price_table_version: str = ""

    def ended(self, report: UsageReport, end_time_ns: int, *, cost: Cost | None = None, price_table_version: str = "") -> UsageEvent:
        """The same attempt with what its answer said and cost."""
        return dataclasses.replace(
            self,
            end_time_ns=end_time_ns,
            response_model=report.model,
            response_id=report.response_id,
            usage=report.usage,
            complete=report.complete,
            error=report.error,
            source=report.source,
            anomalies=report.anomalies,
            finish_reason=report.finish_reason,
            service_tier=report.service_tier,
            cost=cost,
            price_table_version=price_table_version,
        )


@dataclasses.dataclass(frozen=True)
class JournalRecord:
    """number: the same in begin and end, never used again. event_id: unique beyond the journal; consumers drop what they have seen."""

    kind: JournalKind
    number: int
    event_id: str
    event: UsageEvent

    def json_line(self) -> str:
        """One line of JSON with OpenTelemetry's names (gen_ai.*) where there are any, its line feed included."""
        return record_json_line(self)

    def focus_rows(self) -> str:
        """Rows of FOCUS as CSV, one per line of the bill, line feeds included; see focus_header."""
        return record_focus_rows(self)


def record_of(raw: dict[str, Any]) -> JournalRecord:
    """Of the fields that the extension gives."""
    return JournalRecord(raw["kind"], raw["number"], raw["event_id"], UsageEvent(**raw["event"]))


class JournalCursor(NamedTuple):
    """A place between two records; orders as they do. Keep it as two ints."""

    segment: int = 0
    offset: int = 0


@dataclasses.dataclass(frozen=True)
class JournalStatistics:
    """recovered: incomplete ones, when it was opened. torn_bytes: cut off a tail then. damaged: segments. unbilled: requests let
    through without a record. lost_ends: that neither disk nor memory took. held_ends: in memory. full: the last write failed.
    """

    begins: int
    ends: int
    recovered: int
    torn_bytes: int
    damaged: int
    unbilled: int
    lost_ends: int
    held_ends: int
    open: int
    bytes: int
    syncs: int
    full: bool


class Journal(CoreJournal):
    """The record of what was used that survives a crash: `begin` before a request leaves, `end` after. Thread-safe.

        with Journal("usage") as journal:
            event = UsageEvent(key_id="alice", request_model="m", usage=estimate.usage, start_time_ns=time.time_ns())
            number = journal.begin(event)
            ...
            journal.end(number, event.ended(meter.report(), time.time_ns(), cost=cost))

    A record is in the kernel before a call returns, so a killed process loses nothing; what it left open is handed over as
    `incomplete` when the journal is opened again. sync: for machines that lose power. max_bytes: of all segments, 0: no limit;
    on_full: beyond it, or when the disk fails. One process writes a directory at a time.
    errors of opening: Error io; already_exists: another process has it open; malformed: the directory holds something else.
    """

    def begin(self, estimate: UsageEvent) -> int:
        """Before the request leaves. estimate.usage is what becomes of it if nothing more is heard.

        returns: the event's number; 0: unbilled. errors: Error io (refuse); invalid_argument: more than 64 KiB of text.
        """
        return self._begin(estimate)

    def end(self, number: int, event: UsageEvent) -> None:
        """After it. number 0 is ignored. errors: Error stale: it ended before, or never began; io; invalid_argument."""
        self._end(number, event)

    def acknowledge(self, cursor: JournalCursor) -> None:
        """A consumer has everything before `cursor`: it is never handed over again. Going back is ignored. errors: Error io."""
        self._acknowledge(*cursor)

    @property
    def acknowledged(self) -> JournalCursor:
        """Where a consumer goes on."""
        return JournalCursor(*self._acknowledged())

    def statistics(self) -> JournalStatistics:
        """What it wrote, holds and lost."""
        return JournalStatistics(**self._statistics())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class JournalReader(CoreReader):
    """The records of a journal, also while it is written, by this process or another. An iterator, as a file is of its lines:
    it ends where there is no more for now, and a later loop goes on there.

        reader = JournalReader("usage", journal.acknowledged)
        for record in reader:
            send(record.json_line())
        journal.acknowledge(reader.cursor)             # after they have arrived
    """

    def __init__(self, directory: Path, cursor: JournalCursor = JournalCursor(), *, begins: bool = False) -> None:
        """cursor: Journal.acknowledged for a consumer; left out, everything there is. begins: and what was withdrawn, too.

        errors: Error io, malformed.
        """
        super().__init__(directory, *cursor)
        self._begins = begins

    def __iter__(self) -> Iterator[JournalRecord]:
        return self

    def __next__(self) -> JournalRecord:
        raw = self._next(self._begins)
        if raw is None:
            raise StopIteration
        return record_of(raw)

    @property
    def cursor(self) -> JournalCursor:
        """Behind the last record."""
        return JournalCursor(*self._cursor())


@dataclasses.dataclass(frozen=True)
class LedgerSums:
    """units: tokens, unless the name says otherwise. Token sums are of what is known.

    incomplete: attempts whose last word was not heard. unknown_cost: attempts without a price: cost_picos lacks them.
    cache_reported_input_tokens: input of attempts that said how much was cached. saved_by_cache_picos: what the same tokens would
    have cost without a cache, less what they cost (needs the ledger's prices).
    """

    attempts: int
    incomplete: int
    errors: int
    unknown_usage: int
    unknown_cost: int
    input_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int
    output_tokens: int
    reasoning_output_tokens: int
    cache_reported_input_tokens: int
    cost_picos: int
    saved_by_cache_picos: int

    @property
    def cost_usd(self) -> Decimal:
        return usd(self.cost_picos)

    @property
    def saved_by_cache_usd(self) -> Decimal:
        return usd(self.saved_by_cache_picos)

    @property
    def hit_ratio(self) -> float | None:
        """Cached share of the input that could be told, 0..1; None: nothing could."""
        if self.cache_reported_input_tokens == 0:
            return None
        return self.cached_input_tokens / self.cache_reported_input_tokens


@dataclasses.dataclass(frozen=True)
class LedgerRow:
    """Names that were not asked for are '', the window 0. model: that answered; where that was not said, that was asked for."""

    key_id: str
    team_id: str
    model: str
    replica_id: str
    class_id: str
    window_start_ns: int
    sums: LedgerSums


def _row(raw: dict[str, Any]) -> LedgerRow:
    values = dict(raw)
    values["sums"] = LedgerSums(**raw["sums"])
    return LedgerRow(**values)


class Ledger(CoreLedger):
    """Who used how much: sums of events per key, team, model, replica, class and window, exact. Thread-safe.

        ledger = Ledger(prices=prices)
        ledger.add(ended)                              # or ledger.read(JournalReader("usage"))
        for row in ledger.snapshot(["team", "model"]):
            print(row.team_id, row.model, row.sums.cost_usd)

    by: what rows are told apart by; None: all of key, team, model, replica, class, window. window_ns: windows begin at its multiples
    since 1970, UTC, by the end of an event. prices: for saved_by_cache; reprice: costs are those of `prices`, not the events'.
    """

    def __init__(
        self,
        *,
        by: Iterable[str] | None = None,
        window_ns: int = 3_600_000_000_000,
        max_rows: int = 1_000_000,
        prices: PriceTable | None = None,
        reprice: bool = False,
    ) -> None:
        """max_rows: what comes beyond goes to one row without names. errors: ValueError: no such dimension."""
        names = None if by is None else list(by)
        super().__init__(by=names, window_ns=window_ns, max_rows=max_rows, prices=prices, reprice=reprice)

    def add(self, event: UsageEvent, *, incomplete: bool = False) -> None:
        """One event that ended. incomplete: recovered or estimated."""
        self._add(event, incomplete)

    def snapshot(self, by: Iterable[str] | None = None) -> list[LedgerRow]:
        """Sums by any of the ledger's own dimensions, in the order of their names. Writers hardly wait."""
        rows = self._snapshot(None if by is None else list(by))
        return [_row(row) for row in rows]

    def total(self) -> LedgerSums:
        """Of everything."""
        return LedgerSums(**self._total())
