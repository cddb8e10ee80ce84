"""KV events of engines: KvSource takes messages from a transport of yours, KvSubscriber listens over ZeroMQ."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict

from ._background import close_at_exit
from ._core import KvNoticeKind, KvResync, KvSourceState, LogLevel
from ._core import KvSource as CoreSource
from ._core import KvSubscriber as CoreSubscriber
from ._core import Router as CoreRouter

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


@dataclasses.dataclass(frozen=True)
class KvNotice:
    """What happened to a source. from_, to: numbers of messages; of 'block_size': tokens per block, theirs and ours.

    reason: why the cache was cleared ('resync'). fault: what is wrong with a message or an event, by name; 'none' otherwise.
    block, parent: the engine's names, of 'orphan' and 'unknown_block'.
    """

    kind: KvNoticeKind
    reason: KvResync
    fault: str
    from_: int
    to: int
    block: int
    parent: int


@dataclasses.dataclass(frozen=True)
class KvSourceStatus:
    """How a source is. next: the number that is expected. unsure_since_ns: while replaying.

    orphan_blocks, held_bytes: waiting now. blocks_stored, blocks_removed: in events for this router.
    """

    state: KvSourceState
    next: int
    unsure_since_ns: int
    last_event_ns: int
    messages: int
    replayed: int
    duplicates: int
    gaps: int
    resyncs: int
    restarts: int
    bad_messages: int
    bad_events: int
    unknown_removes: int
    orphan_blocks: int
    held_bytes: int
    blocks_stored: int
    blocks_removed: int


class KvEventKeywords(TypedDict, total=False):
    """How an engine's events are read; each has a default.

    block_size, hash_seed: the policy's. engine_block_size: tokens, 0 = as the policy's; else a multiple of it, or a divisor.
    isolation_key: where the engine serves one tenant alone. replay_attempts: a hole is asked for again, so often in a row.
    """

    block_size: int | None
    engine_block_size: int
    hash_seed: int | None
    isolation_key: str
    replay_attempts: int
    replay_timeout_ns: int
    max_message_bytes: int
    max_held_bytes: int
    max_orphan_blocks: int
    orphan_age_ns: int


class KvSource(CoreSource):
    """Keeps a router right about one engine's cache while its events get lost, come twice or begin anew.

    One source per publisher, i.e. per data-parallel rank, of vLLM or SGLang. You bring the messages: over ZeroMQ (pyzmq's
    recv_multipart), or by a call from inside the engine's process. Numbers are checked, a gap is filled from the engine's
    replay or ends in a cleared cache, a restart clears at once. Thread-safe; no socket, no thread.

        source = warmroute.KvSource(router, replica, replay=True, notice=print)
        source.live([topic, seq, payload])               # or live_payload(seq, payload)
        if (first := source.wants_replay()) is not None:
            ...                                          # ask the engine for its messages from `first` on, give them to replayed
    """

    def __init__(
        self,
        router: CoreRouter,
        replica: int,
        *,
        replay: bool = False,
        notice: Callable[[KvNotice], object] | None = None,
        **options: Unpack[KvEventKeywords],
    ) -> None:
        """replay: the engine answers replay requests. notice: called after the call that caused it, without any lock held.

        errors: Error stale, invalid_argument (options).
        """

        def heard(raw: dict[str, Any]) -> object:
            return None if notice is None else notice(KvNotice(**raw))

        super().__init__(router, replica, notice=None if notice is None else heard, replay=replay, **options)

    def status(self) -> KvSourceStatus:
        """How it is now, and what it has seen."""
        return KvSourceStatus(**self._status())


@dataclasses.dataclass(frozen=True)
class KvEndpointStatus:
    """One engine's subscription. connects: how often it was there. bad_frames: messages that were no [topic, seq, payload]."""

    replica: int
    connected: bool
    connects: int
    bad_frames: int
    source: KvSourceStatus


def _endpoint_status(raw: dict[str, Any]) -> KvEndpointStatus:
    values = dict(raw)
    values["source"] = KvSourceStatus(**raw["source"])
    return KvEndpointStatus(**values)


class KvSubscriber(CoreSubscriber):
    """Subscribes to the KV events of many engines over ZeroMQ, on one thread of its own: a KvSource per engine, replays included.

    Only where `warmroute.has_zmq`: wheels are built without, `pip install . -C cmake.define.WARMROUTE_WITH_ZMQ=ON` with ZeroMQ.
    Use it as a context manager, or `close` it; the interpreter's end does. A source's log lines come to `log` on its thread.
    """

    def __init__(
        self,
        router: CoreRouter,
        *,
        log: Callable[[LogLevel, str], object] | None = None,
        clock: Callable[[], int] | None = None,
        max_message_bytes: int = 1 << 24,
        queue_messages: int = 100_000,
        reconnect_from_ns: int = 100_000_000,
        reconnect_to_ns: int = 5_000_000_000,
    ) -> None:
        """clock: left out, the router's, or time.monotonic_ns(). errors: Error unsupported (without ZeroMQ), io."""
        super().__init__(
            router,
            log=log,
            clock=clock,
            max_message_bytes=max_message_bytes,
            queue_messages=queue_messages,
            reconnect_from_ns=reconnect_from_ns,
            reconnect_to_ns=reconnect_to_ns,
        )
        close_at_exit(self)

    def status(self, replica: int) -> KvEndpointStatus:
        """At most a tenth of a second old. errors: Error not_found."""
        return _endpoint_status(self._status(replica))

    def statuses(self) -> list[KvEndpointStatus]:
        """Those of all engines."""
        return [_endpoint_status(raw) for raw in self._statuses()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

