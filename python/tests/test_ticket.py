"""Tickets: released exactly once on every path, in threads' and in asyncio's code."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

import numpy
import pytest

import warmroute
from warmroute import Outcome, outcome_of


def outcomes(router) -> dict[str, int]:
    return {name: count for name, count in router.statistics().outcomes.items() if count}


def test_a_normal_end_finishes_with_the_usage_told(router, prompt) -> None:
    with router.route(prompt) as ticket:
        assert ticket and ticket.open and ticket.first_token()
        ticket.usage(input_tokens=1_000, cached_tokens=0, output_tokens=3)
    assert not ticket.open and not ticket.finish() and not ticket.fail() and not ticket.first_token()
    assert outcomes(router) == {"finished": 1} and router.statistics().output_tokens == 3
    assert router.statistics().late_calls == 0  # a ticket knows that it is over


class HttpError(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


class Response:
    status_code = 404


class HttpxError(Exception):
    response = Response()


class ClientConnectorError(OSError):
    pass


class ReadTimeout(Exception):
    pass


@pytest.mark.parametrize(
    "error, outcome",
    [
        (asyncio.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (GeneratorExit(), "cancelled"),
        (KeyError("a bug of the caller"), "cancelled"),
        (HttpError(429), "backpressure"),
        (HttpError(503), "backpressure"),
        (HttpError(400), "client_error"),
        (HttpError(500), "replica_error"),
        (HttpxError(), "client_error"),
        (TimeoutError(), "timeout"),
        (asyncio.TimeoutError(), "timeout"),
        (socket.timeout(), "timeout"),
        (ReadTimeout(), "timeout"),
        (ConnectionRefusedError(), "connect_error"),
        (ClientConnectorError(), "connect_error"),
        (socket.gaierror(), "connect_error"),
        (ConnectionResetError(), "replica_error"),
        (BrokenPipeError(), "replica_error"),
        (asyncio.IncompleteReadError(b"", 5), "replica_error"),
    ],
)
def test_an_exception_fails_with_the_fitting_outcome_and_goes_on(router, prompt, error, outcome) -> None:
    assert outcome_of(error) is Outcome[outcome]
    with pytest.raises(type(error)):
        with router.route(prompt):
            raise error
    assert outcomes(router) == {outcome: 1}


def test_what_the_block_says_itself_wins(router, prompt) -> None:
    with pytest.raises(ValueError):
        with router.route(prompt) as ticket:
            ticket.fail(Outcome.replica_error)
            raise ValueError
    with router.route(prompt) as ticket:
        ticket.fail("client_error")
    with router.route(prompt) as ticket:
        ticket.finish()
    assert outcomes(router) == {"replica_error": 1, "client_error": 1, "finished": 1}


def test_a_forgotten_ticket_is_released_with_a_warning(router, prompt) -> None:
    with pytest.warns(ResourceWarning, match="never finished"):
        router.route(prompt)
        gc.collect()
    assert outcomes(router) == {"cancelled": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        router.route(prompt).finish()
        router.route(prompt, excluded=list(router.replicas()))
        gc.collect()


def test_a_detached_ticket_is_released_by_number(router, prompt) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        number = router.route(prompt).detach()
        gc.collect()
    assert router.statistics().tickets_in_flight == 1
    assert router.finish(number) and not router.finish(number)


def test_generators_and_returns_release(router, prompt) -> None:
    def stream():
        with router.route(prompt):
            yield 1
            yield 2

    chunks = stream()
    next(chunks)
    assert router.statistics().tickets_in_flight == 1
    chunks.close()
    assert outcomes(router) == {"cancelled": 1}

    def early() -> int:
        with router.route(prompt):
            return 5

    assert early() == 5 and outcomes(router) == {"cancelled": 1, "finished": 1}


def test_async_with_releases_on_cancellation_and_timeout(router, prompt) -> None:
    async def serve(seconds: float) -> None:
        async with router.route(prompt) as ticket:
            await asyncio.sleep(seconds)
            ticket.first_token()

    async def main() -> None:
        await serve(0)
        task = asyncio.create_task(serve(10))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(serve(10), 0.01)

    asyncio.run(main())
    assert outcomes(router) == {"finished": 1, "cancelled": 2}


def test_asyncio_stress_releases_every_ticket(router) -> None:
    prompts = [numpy.arange(i, i + 200, dtype=numpy.uint32) for i in range(0, 2_000, 100)]

    async def serve(i: int) -> None:
        async with router.route(prompts[i % len(prompts)], session=str(i % 50)) as ticket:
            assert ticket
            await asyncio.sleep(0.0001 * (i % 7))
            if i % 3 == 0:
                raise ConnectionResetError
            ticket.first_token()
            await asyncio.sleep(0)
            ticket.usage(cached_tokens=0, output_tokens=1)

    async def main() -> None:
        tasks = [asyncio.create_task(serve(i)) for i in range(3_000)]
        await asyncio.sleep(0.002)
        for task in tasks[::5]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    statistics = router.statistics()
    assert statistics.tickets_in_flight == 0
    # tasks that were cancelled before they began have routed nothing
    assert sum(statistics.outcomes.values()) == statistics.verdicts["routed"] > 2_000
    assert statistics.outcomes["replica_error"] > 0 and statistics.outcomes["finished"] > 0
    assert statistics.outcomes["lease_expired"] == 0 == statistics.late_calls


def test_usage_may_come_from_another_clock(prompt) -> None:
    router = warmroute.Router()
    router.add_replica("a", 10)
    ticket = router.route(prompt, 20)
    assert ticket.first_token(30) and ticket.finish(40)
    assert router.statistics().observed_ttft.sum_ns == 10
