"""Limits with their friendly calls: `with limits.reserve(...) as reservation:` settles or releases on every path."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from ._core import CalendarUnit, LimitDecision, LimitKind, LimitOutcome, LimitProgress, LimitUnit, Outcome, Usage
from ._core import Limits as CoreLimits
from ._error import Error
from ._ticket import outcome_of


@dataclasses.dataclass(frozen=True)
class CalendarWindow:
    """Windows that follow one another without gaps: from the anchor, each `count` units, in a time zone of the tz database.

    anchor_local_seconds: where one begins, in seconds since 1970 on that zone's own clock; 0: midnight, weeks on Monday.
    """

    unit: CalendarUnit | str = CalendarUnit.month
    count: int = 1
    anchor_local_seconds: int = 0
    time_zone: str = "UTC"


@dataclasses.dataclass(frozen=True)
class LimitSpec:
    """One limit of a scope. name: within its scope; counters stay with it when limits are set anew.

    rate: `amount` per period_ns, `burst` at once (0: amount). budget: `amount` per window. concurrency: `amount` at once.
    cached_weight_permille: what a cached input token counts. shadow: counts and reports, never denies. hard_stop: of a budget:
    progress stops a stream that is past its reservation when it is gone. cost_nanos counts 1e-9 USD.
    """

    name: str
    kind: LimitKind | str = LimitKind.rate
    unit: LimitUnit | str = LimitUnit.requests
    amount: int = 0
    period_ns: int = 60_000_000_000
    burst: int = 0
    window: CalendarWindow = CalendarWindow()
    cached_weight_permille: int = 1_000
    shadow: bool = False
    hard_stop: bool = False


@dataclasses.dataclass(frozen=True)
class LimitStatistics:
    """expired: leases that ended. stale: tickets used again or too late. open: reservations now."""

    allowed: int
    denied: int
    shadow_denied: int
    expired: int
    stale: int
    open: int


def spec_of(raw: dict[str, Any]) -> LimitSpec:
    """Of the fields that the extension gives."""
    values = dict(raw)
    values["window"] = CalendarWindow(**raw["window"])
    return LimitSpec(**values)


class DeniedBy(NamedTuple):
    """Which limit of which scope."""

    dimension: str
    value: str
    limit: str


class Reservation:
    """One request's place in all its limits, given back exactly once.

    A reservation that was denied is false and its calls do nothing: answer `status()` with `headers`.
    `with` or `async with`: a normal end settles what `used` was told, and as reserved what it was not. So does an exception, but
    one by which the request never left (see outcome_of: connect_error) releases, and one by which the upstream refused it
    (backpressure, client_error) settles it without tokens. One that is garbage-collected while open is settled, with a
    ResourceWarning. A lease that ended meanwhile is no error at the end of a block.
    """

    __slots__ = ("_limits", "_open", "_use", "decision", "number", "__weakref__")

    decision: LimitDecision
    """Whether it may pass, and why not."""
    number: int
    """The ticket as an int, for the flat calls of Limits; 0 when denied."""

    def __init__(self, limits: Limits, decision: LimitDecision) -> None:
        self._limits = limits
        self._use: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
        self.decision = decision
        self.number = decision.ticket
        self._open = self.number != 0

    @property
    def open(self) -> bool:
        """Whether it is neither settled nor released."""
        return self._open

    @property
    def outcome(self) -> LimitOutcome:
        return self.decision.outcome

    @property
    def headers(self) -> dict[str, str]:
        """For the client, in OpenAI's manner: x-ratelimit-*, and retry-after where time heals."""
        return self.decision.headers

    def status(self, budget_status: int = 402) -> int:
        """200, 429 (rates, concurrency), budget_status (402 or 403), 400 (never passes), 503 (no room), 500."""
        return self.decision.status(budget_status)

    @property
    def denied_by(self) -> DeniedBy | None:
        """The limit that denied: the budget, else what takes longest to heal."""
        return self._limits.named(self.decision.scope, self.decision.limit)

    @property
    def shadow_denied_by(self) -> DeniedBy | None:
        """The limit in shadow mode that would have denied."""
        return self._limits.named(self.decision.shadow_scope, self.decision.shadow_limit)

    def __bool__(self) -> bool:
        return self.number != 0

    def used(self, usage: Usage, cost_picos: int | None = None) -> None:
        """What it has used, for the end of the block. None = unknown, which stays as reserved."""
        self._use = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, cost_picos)

    def progress(
        self,
        usage: Usage,
        cost_picos: int | None = None,
        *,
        now_ns: int | None = None,
        wall_ns: int | None = None,
    ) -> LimitProgress:
        """What its stream has used so far. Renews the lease. returns: `stop` when a hard_stop budget is gone."""
        if not self._open:
            return LimitProgress.stale
        return self._limits.progress(
            self.number,
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            output_tokens=usage.output_tokens,
            cost_picos=cost_picos,
            now_ns=now_ns,
            wall_ns=wall_ns,
        )

    def settle(
        self,
        usage: Usage | None = None,
        cost_picos: int | None = None,
        *,
        now_ns: int | None = None,
        wall_ns: int | None = None,
    ) -> bool:
        """The truth, into the windows that were charged. usage None: what `used` was told. returns: False if it was over."""
        if not self._open:
            return False
        if usage is not None:
            self.used(usage, cost_picos)
        self._open = False
        tokens_in, cached, out, cost = self._use
        try:
            self._limits.settle(
                self.number,
                input_tokens=tokens_in,
                cached_input_tokens=cached,
                output_tokens=out,
                cost_picos=cost,
                now_ns=now_ns,
                wall_ns=wall_ns,
            )
        except Error as error:
            if error.code != "stale":
                raise
            return False
        return True

    def release(self, *, now_ns: int | None = None, wall_ns: int | None = None) -> bool:
        """It never left, or nothing is to be paid for it: all is given back, the request too. returns: False if it was over."""
        if not self._open:
            return False
        self._open = False
        try:
            self._limits.release(self.number, now_ns=now_ns, wall_ns=wall_ns)
        except Error as error:
            if error.code != "stale":
                raise
            return False
        return True

    def detach(self) -> int:
        """Gives the ticket's number away: from now on it is the caller's to settle or release, by the flat calls."""
        self._open = False
        return self.number

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outcome = None if error is None else outcome_of(error)
        if outcome is Outcome.connect_error:
            self.release()
        elif outcome in (Outcome.backpressure, Outcome.client_error):
            self.settle(Usage(input_tokens=0, cached_input_tokens=0, output_tokens=0), 0)
        else:
            self.settle()

    async def __aenter__(self) -> Reservation:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __del__(self, _warn: Any = warnings.warn) -> None:
        if getattr(self, "_open", False):
            self.settle()
            _warn(f"{self!r} was never settled: use it in a with block", ResourceWarning, source=self)

    def __repr__(self) -> str:
        state = "open" if self._open else "over" if self.number else self.decision.outcome.name
        return f"<warmroute.usage.Reservation {self.number:#x} {state}>"


class Limits(CoreLimits):
    """How much a client may use, per key, team, model or any other label: rates, calendar budgets, concurrency. Thread-safe.

        limits = Limits()
        limits.set_default_limits("key", [LimitSpec("rpm", amount=60)])
        with limits.reserve([limits.scope("key", "alice")], input_tokens=900, output_tokens=500) as reservation:
            if not reservation:
                ...                                    # answer reservation.status() with reservation.headers
            reservation.used(meter.usage, cost.picos)  # settled at the end of the block

    All limits of all scopes are charged or none. lease_ns: a reservation that nobody settles ends then; orphans: what becomes of
    its charge. now_ns: for rates and leases; wall_ns: for budgets.
    """

    def set_limits(self, scope: int, limits: Iterable[LimitSpec]) -> None:
        """Limits of one scope, instead of its dimension's defaults. errors: Error invalid_argument, not_found; nothing changes then."""
        self._set_limits(scope, limits)

    def set_default_limits(self, dimension: str, limits: Iterable[LimitSpec]) -> None:
        """Limits of every value of a dimension that has none of its own. errors: Error invalid_argument."""
        self._set_default_limits(dimension, limits)

    def limits(self, scope: int) -> list[LimitSpec]:
        """Those in force, in their order."""
        return [spec_of(row) for row in self._limits(scope)]

    def named(self, scope: int | None, limit: int) -> DeniedBy | None:
        """The names behind a decision's scope and limit."""
        if scope is None:
            return None
        specs = self.limits(scope)
        return DeniedBy(*self.scope_name(scope), specs[limit].name if limit < len(specs) else "")

    def reserve(
        self,
        scopes: Sequence[int],
        *,
        input_tokens: int | None = None,
        cached_input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost_picos: int | None = None,
        now_ns: int | None = None,
        wall_ns: int | None = None,
    ) -> Reservation:
        """One request and what it may use, against all limits of all scopes (8 at most). None counts 0. See Reservation."""
        decision = self.decide(
            scopes,
            input_tokens=input_tokens,
            cached_input_tokens=cached_input_tokens,
            output_tokens=output_tokens,
            cost_picos=cost_picos,
            now_ns=now_ns,
            wall_ns=wall_ns,
        )
        return Reservation(self, decision)

    def statistics(self) -> LimitStatistics:
        """What was decided so far."""
        return LimitStatistics(**self._statistics())
