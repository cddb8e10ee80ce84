"""Ticket: the handle of one routed request, as a context manager."""

from __future__ import annotations

import asyncio
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._core import Decision, Outcome

if TYPE_CHECKING:
    from ._router import Router


def _status_of(error: BaseException) -> int | None:
    """The HTTP status an exception carries: aiohttp's `status`, httpx's and openai's `response` or `status_code`."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and 400 <= status < 600:
                return status
    return None


def _is_a(error: BaseException, *words: str) -> bool:
    """Whether the name of one of its classes says so: HTTP clients need not be imported to know their exceptions."""
    return any(word in kind.__name__ for kind in type(error).__mro__ for word in words)


def outcome_of(error: BaseException) -> Outcome:
    """The Outcome that an exception out of a `with router.route(...)` block stands for.

    Cancellation and exceptions that say nothing of the replica are `cancelled`; an HTTP status is 429 or 503
    `backpressure`, other 4xx `client_error`, 5xx `replica_error`; a timeout `timeout`; a failed connect `connect_error`;
    a connection that broke `replica_error`. Call `ticket.fail(outcome)` inside the block to say it better.
    """
    if isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)):
        return Outcome.cancelled
    status = _status_of(error)
    if status is not None:
        if status in (429, 503):
            return Outcome.backpressure
        return Outcome.client_error if status < 500 else Outcome.replica_error
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)) or _is_a(error, "Timeout"):
        return Outcome.timeout
    if isinstance(error, ConnectionRefusedError) or _is_a(error, "ConnectError", "ConnectorError", "gaierror"):
        return Outcome.connect_error
    if isinstance(error, (ConnectionError, EOFError)) or _is_a(
        error, "ClientConnectionError", "ClientPayloadError", "TransportError", "APIConnectionError"
    ):
        return Outcome.replica_error
    return Outcome.cancelled


class Ticket:
    """One routed request: where to send it, and the handle that releases its load exactly once.

    `with` or `async with`: a normal end is finish (with what `usage` was told), an exception is fail (see outcome_of).
    A ticket that was not routed is false and its calls do nothing: look at `decision.verdict`, answer 503 or retry.
    One that is garbage-collected while open is released as cancelled, with a ResourceWarning.
    """

    __slots__ = ("_open", "_prefilling", "_router", "_usage", "decision", "number", "replica", "__weakref__")

    decision: Decision
    """What was decided, and why."""
    number: int
    """The ticket as an int, for the flat calls; 0 when not routed."""
    replica: int
    """The replica's int; negative when not routed."""

    def __init__(self, router: Router, decision: Decision) -> None:
        self._router = router
        self._usage: tuple[int | None, int | None, int | None] = (None, None, None)
        self.decision = decision
        self.number = decision.ticket
        self.replica = decision.replica
        self._open = self._prefilling = self.number != 0

    @property
    def routed(self) -> bool:
        """Whether there is a replica to send it to."""
        return self.number != 0

    @property
    def open(self) -> bool:
        """Whether it still holds load."""
        return self._open

    def __bool__(self) -> bool:
        return self.number != 0

    def first_token(self, now_ns: int | None = None) -> bool:
        """The first token (or chunk) came: its prefill load is released. Call it at every chunk, if that is simpler.

        returns: False if it had it, or is over.
        """
        if not (self._open and self._prefilling):
            return False
        self._prefilling = False
        return self._router.first_token(self.number, now_ns)

    def usage(
        self, *, input_tokens: int | None = None, cached_tokens: int | None = None, output_tokens: int | None = None
    ) -> None:
        """What the response's usage said, for the finish at the end of the block. None = unknown, which is not zero."""
        self._usage = (input_tokens, cached_tokens, output_tokens)

    def finish(self, now_ns: int | None = None) -> bool:
        """The request is over, with the usage told so far. returns: False if it was over."""
        if not self._open:
            return False
        self._open = False
        tokens_in, cached, out = self._usage
        return self._router.finish(self.number, now_ns, input_tokens=tokens_in, cached_tokens=cached, output_tokens=out)

    def fail(self, outcome: Outcome | str = "cancelled", now_ns: int | None = None) -> bool:
        """The request is over without a whole answer. returns: False if it was over."""
        if not self._open:
            return False
        self._open = False
        return self._router.fail(self.number, outcome, now_ns)

    def detach(self) -> int:
        """Gives the ticket's number away: from now on it is the caller's to release, by the flat calls."""
        self._open = False
        return self.number

    def __enter__(self) -> Ticket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._open:
            return
        if error is None:
            self.finish()
        else:
            self.fail(outcome_of(error))

    async def __aenter__(self) -> Ticket:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __del__(self, _warn: Any = warnings.warn, _outcome: Outcome = Outcome.cancelled) -> None:
        # _open is missing where the router raised before there was a ticket
        if getattr(self, "_open", False):
            self._open = False
            self._router.fail(self.number, _outcome)
            _warn(f"{self!r} was never finished: use it in a with block", ResourceWarning, source=self)

    def __repr__(self) -> str:
        state = "open" if self._open else "over" if self.number else self.decision.verdict.name
        return f"<warmroute.Ticket {self.number:#x} {state}>"
