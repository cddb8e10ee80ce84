"""Control's document, the applier that puts it in, the file that brings it, and the hand-over of what was used."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ._background import close_at_exit
from ._core import Code, LogLevel, OnExpired, Policy, PriceSlot, VerifyingKey
from ._core import FileSource as CoreFileSource
from ._core import Handover as CoreHandover
from ._core import Router as CoreRouter
from ._core import Snapshot as CoreSnapshot
from ._core import SnapshotApplier as CoreApplier
from ._core import parse_snapshot as core_parse
from ._core import verify_snapshot as core_verify
from ._usage_journal import Journal, JournalCursor, JournalRecord, record_of
from ._usage_keys import KeyDigest, KeyRecord, KeySet
from ._usage_limits import Limits, LimitSpec, spec_of

if TYPE_CHECKING:
    from typing_extensions import Self

Path = Union[str, "os.PathLike[str]"]
Bytes = Union[bytes, bytearray, memoryview, str]


class SnapshotTeam(NamedTuple):
    """name: for people; may be ''."""

    team_id: str
    name: str


class SnapshotLimits(NamedTuple):
    """Limits of one scope. value None: of the dimension's values that have none of their own."""

    dimension: str
    value: str | None
    limits: tuple[LimitSpec, ...]


class SnapshotPrices(NamedTuple):
    """file: LiteLLM's price file, and the sha256 that it must have; '': none. overrides: in the same format."""

    file: str
    file_sha256: str
    overrides: dict[str, Any]


class ForcedRollback(NamedTuple):
    """The one way back. from_: the generation that it ends; it holds for no other."""

    from_: int
    reason: str


class VerifiedSnapshot(NamedTuple):
    """signed_by '': nobody."""

    payload: bytes
    signed_by: str


class Snapshot:
    """What control wants, whole: a valid document, read. It is written as JSON, or as a dict: see parse_snapshot."""

    __slots__ = ("_core",)

    def __init__(self, core: CoreSnapshot) -> None:
        self._core = core

    @property
    def generation(self) -> int:
        return self._core.generation

    @property
    def issued_at_ns(self) -> int:
        return self._core.issued_at_ns

    @property
    def max_age_ns(self) -> int:
        """0: no limit."""
        return self._core.max_age_ns

    @property
    def on_expired(self) -> OnExpired:
        return self._core.on_expired

    @property
    def policy(self) -> Policy | None:
        """None: the policy in force stays."""
        return self._core.policy

    @property
    def forced_rollback(self) -> ForcedRollback | None:
        back = self._core._forced_rollback()
        return None if back is None else ForcedRollback(*back)

    @property
    def key_count(self) -> int:
        return self._core.key_count

    @property
    def keys(self) -> tuple[KeyRecord, ...]:
        """Made anew each time; key_count is quicker."""
        return tuple(_key(raw) for raw in self._core._keys())

    @property
    def teams(self) -> tuple[SnapshotTeam, ...]:
        return tuple(SnapshotTeam(*pair) for pair in self._core._teams())

    @property
    def limits(self) -> tuple[SnapshotLimits, ...]:
        return tuple(
            SnapshotLimits(raw["dimension"], raw["value"], tuple(spec_of(spec) for spec in raw["limits"]))
            for raw in self._core._limits()
        )

    @property
    def prices(self) -> SnapshotPrices:
        raw = self._core._prices()
        overrides: dict[str, Any] = json.loads(raw["overrides"]) if raw["overrides"] else {}
        return SnapshotPrices(raw["file"], raw["file_sha256"], overrides)

    @property
    def aliases(self) -> dict[str, str]:
        """Name to model."""
        return dict(self._core._aliases())

    def json(self) -> str:
        """The document; parsed again it is equal, and what is equal is written alike. One key, team or scope per line."""
        return self._core.json()

    def __eq__(self, other: object) -> bool:
        return self.json() == other.json() if isinstance(other, Snapshot) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<warmroute.control.Snapshot generation {self.generation}, {self.key_count} keys>"


def _key(raw: dict[str, Any]) -> KeyRecord:
    values = dict(raw)
    values["digests"] = tuple(KeyDigest(**digest) for digest in raw["digests"])
    return KeyRecord(**values)


def parse_snapshot(
    payload: Bytes | Mapping[str, Any],
    *,
    max_bytes: int = 1 << 26,
    max_keys: int = 1 << 21,
    max_faults: int = 64,
    base_policy: Policy | None = None,
) -> Snapshot:
    """Reads a document, without envelope: JSON, or the dict of it.

        parse_snapshot({"format": 1, "generation": 7, "issued_at": "2026-01-31T12:00:00Z", "max_age_s": 3600,
                        "keys": [{"public_id": "k1", "team_id": "blue", "version": 1, "digests": [
                            {"kind": "hmac_sha256", "pepper_version": 1, "hex": digest.digest.hex()}]}]})

    Further members: on_expired, teams, limits, prices, aliases, policy, forced_rollback; unknown ones are refused.
    base_policy: members of "policy" that are absent are this one's.
    errors: SnapshotError: each of its faults with its path; Error too_large, invalid_json, too_deep, not_an_object, unsupported.
    """
    return Snapshot(
        core_parse(payload, max_bytes=max_bytes, max_keys=max_keys, max_faults=max_faults, base_policy=base_policy)
    )


def verify_snapshot(bytes: Bytes, trust: Iterable[VerifyingKey] = (), *, allow_unsigned: bool = False) -> VerifiedSnapshot:
    """What is inside an envelope, and who signed it. Several keys: whichever the envelope names.

    errors: Error malformed, unsupported; not_found: a signer who is not trusted; invalid_value: the signature does not hold, or
    there must be one.
    """
    return VerifiedSnapshot(*core_verify(bytes, list(trust), allow_unsigned=allow_unsigned))


@dataclasses.dataclass(frozen=True)
class Applied:
    """unchanged: the same bytes as those in force, a confirmation. signed_by '': unsigned. kept_error: why the last good snapshot
    could not be kept on disk; '': it was.
    """

    generation: int
    unchanged: bool
    rolled_back: bool
    signed_by: str
    kept_error: str


@dataclasses.dataclass(frozen=True)
class RollbackRecord:
    """A roll-back that happened."""

    from_: int
    to: int
    reason: str
    signed_by: str
    at_ns: int


@dataclasses.dataclass(frozen=True)
class ControlStatus:
    """generation 0: none yet. top_generation: the highest that ever was: what comes next must be above it. age_ns: since control was
    last heard of; None: never. from_disk: in force is the last good one, and control was not heard of since. keys: not revoked.
    last_code: of the last apply or load; last_error: of the last one that failed, stays.
    """

    generation: int
    top_generation: int
    issued_at_ns: int
    age_ns: int | None
    max_age_ns: int
    expired: bool
    on_expired: OnExpired
    from_disk: bool
    keys: int
    revoked: int
    applied: int
    confirmed: int
    refused: int
    rollbacks: int
    keep_failures: int
    last_code: Code
    last_error: str


class SnapshotApplier(CoreApplier):
    """Takes signed snapshots in: verifies, parses and builds everything, then puts it into what it was given. Thread-safe.

        keys, limits, prices = KeySet(), Limits(), PriceSlot()
        applier = SnapshotApplier(trust=[key], directory="control", keys=keys, limits=limits, prices=prices, router=router)
        applier.load_last_good()
        with FileSource("snapshot", applier): ...      # from now on a new file is in force in under a second

    A fault anywhere changes nothing. No generation comes twice or goes back, but for a forced roll-back that names the one in force,
    which is recorded. What was revoked stays so, through roll-backs and restarts. Requests never wait for it.
    """

    def __init__(
        self,
        *,
        trust: Iterable[VerifyingKey] = (),
        allow_unsigned: bool = False,
        directory: Path = "",
        price_file: Path = "",
        keys: KeySet | None = None,
        limits: Limits | None = None,
        prices: PriceSlot | None = None,
        router: CoreRouter | None = None,
        check: Callable[[Snapshot], object] | None = None,
        applied: Callable[[Snapshot], object] | None = None,
        rolled_back: Callable[[RollbackRecord], object] | None = None,
        max_bytes: int = 1 << 26,
        max_keys: int = 1 << 21,
        base_policy: Policy | None = None,
    ) -> None:
        """directory: of this process alone, made when absent, for the last good snapshot and what was revoked; '': nothing is kept.
        price_file: where a snapshot names none. router: gets the policy, where a snapshot has one; base_policy None: its.
        check: the snapshot is valid, nothing has changed yet; raising refuses it. applied, rolled_back: after the fact. They are
        called on the thread that applies, and must not change the applier.
        """

        def seen(call: Callable[[Snapshot], object] | None) -> Callable[[CoreSnapshot], object] | None:
            return None if call is None else lambda core: call(Snapshot(core))

        def heard(raw: dict[str, Any]) -> object:
            return None if rolled_back is None else rolled_back(RollbackRecord(**raw))

        super().__init__(
            trust=list(trust),
            allow_unsigned=allow_unsigned,
            directory=os.fspath(directory),
            price_file=os.fspath(price_file),
            keys=keys,
            limits=limits,
            prices=prices,
            router=router,
            check=seen(check),
            applied=seen(applied),
            rolled_back=None if rolled_back is None else heard,
            max_bytes=max_bytes,
            max_keys=max_keys,
            base_policy=base_policy,
        )

    def apply(self, bytes: Bytes, *, now_ns: int | None = None, wall_ns: int | None = None) -> Applied:
        """Envelope and payload.

        errors: those of verify_snapshot and parse_snapshot (the paths are in the message); Error stale: not newer than what was, or a
        roll-back from another generation; what prices, limits and `check` say. Nothing has changed then.
        """
        return Applied(**self._apply(bytes, now_ns, wall_ns))

    def status(self, now_ns: int | None = None) -> ControlStatus:
        """Waits for no change."""
        return ControlStatus(**self._status(now_ns))

    def rollbacks(self) -> list[RollbackRecord]:
        """All that are remembered, oldest first, across restarts (the last 1,000)."""
        return [RollbackRecord(**raw) for raw in self._rollbacks()]


@dataclasses.dataclass(frozen=True)
class FileSourceStatus:
    """looks: at the path. reads: of the whole file. refused: times that taking or reading it failed. missing, good: at the last look,
    the file was not there; was what had been accepted. last_error: of the last failure; stays.
    """

    looks: int
    reads: int
    accepted: int
    refused: int
    missing: bool
    good: bool
    last_error: str


class FileSource(CoreFileSource):
    """Watches a file that somebody replaces, on a thread of its own, and applies it when it is another one.

    A missing, half-written or refused file is said and tried again; what was applied before stays in force. While the file stays as
    it is, control is there: the applier is confirmed. Use it as a context manager, or `close` it; the interpreter's end does.
    """

    def __init__(
        self,
        path: Path,
        applier: SnapshotApplier | None = None,
        *,
        on_bytes: Callable[[bytes], object] | None = None,
        on_same: Callable[[], object] | None = None,
        log: Callable[[LogLevel, str], object] | None = None,
        clock: Callable[[], tuple[int, int]] | None = None,
        interval_ns: int = 100_000_000,
        retry_to_ns: int = 5_000_000_000,
        max_bytes: int = 1 << 26,
    ) -> None:
        """on_bytes: instead of an applier, on the source's thread; raising refuses the bytes, which come again. on_same: at every
        look at which the file is still what was accepted. clock: (now_ns, wall_ns) for the applier. interval_ns: between two looks.
        retry_to_ns: a file that was refused is handed over again, ever later, up to this.
        errors: Error invalid_argument: every fault named; io.
        """
        super().__init__(
            path,
            applier,
            on_bytes=on_bytes,
            on_same=on_same,
            log=log,
            clock=clock,
            interval_ns=interval_ns,
            retry_to_ns=retry_to_ns,
            max_bytes=max_bytes,
        )
        close_at_exit(self)

    def status(self) -> FileSourceStatus:
        """How it is now."""
        return FileSourceStatus(**self._status())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@dataclasses.dataclass(frozen=True)
class HandoverStatus:
    """delivered: events that were taken. failures: of taking, of the journal or the acknowledgement. drained: at the last look nothing
    was left. last_error: of the last failure; stays.
    """

    delivered: int
    batches: int
    failures: int
    failures_in_row: int
    drained: bool
    acknowledged: JournalCursor
    last_error: str


class Handover(CoreHandover):
    """Hands a journal's events over, on a thread of its own, and acknowledges what was taken: at least once, in order, across restarts.

        with Handover(journal, deliver=lambda records: post([record.json_line() for record in records])):
            ...

    deliver: raising leaves the records where they are: they come again, later. Consumers drop event ids that they have seen.
    json_lines: instead, a file to append a line of JSON per event to. Close it before the journal, which it keeps open.
    Use it as a context manager, or `close` it; the interpreter's end does.
    """

    def __init__(
        self,
        journal: Journal,
        deliver: Callable[[list[JournalRecord]], object] | None = None,
        *,
        json_lines: Path | None = None,
        log: Callable[[LogLevel, str], object] | None = None,
        batch: int = 256,
        interval_ns: int = 200_000_000,
        backoff_from_ns: int = 100_000_000,
        backoff_to_ns: int = 30_000_000_000,
    ) -> None:
        """batch: events at most. interval_ns: between looks at a journal that has nothing new. backoff_*: failures in a row double the
        pause. errors: Error invalid_argument: every fault named; io.
        """

        def given(raws: list[dict[str, Any]]) -> object:
            if deliver is None:
                return None
            return deliver([record_of(raw) for raw in raws])

        super().__init__(
            journal,
            None if deliver is None else given,
            json_lines=json_lines,
            log=log,
            batch=batch,
            interval_ns=interval_ns,
            backoff_from_ns=backoff_from_ns,
            backoff_to_ns=backoff_to_ns,
        )
        close_at_exit(self)

    def status(self) -> HandoverStatus:
        """How it is now, and what it has done since the start."""
        raw = self._status()
        raw["acknowledged"] = JournalCursor(*raw["acknowledged"])
        return HandoverStatus(**raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
