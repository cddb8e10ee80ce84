"""Keys and limits: who calls, and whether it may; reservations that are settled or released on every path."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import hmac
import threading
import time
import warnings

import pytest

from warmroute import Error, usage
from warmroute.usage import (
    REVOKED_FOREVER,
    CalendarWindow,
    DeniedBy,
    KeyDigest,
    KeyRecord,
    KeySet,
    KeyVerdict,
    LimitOutcome,
    LimitProgress,
    Limits,
    LimitSpec,
    Usage,
    key_digest,
)

S = 1_000_000_000
PEPPER = b"sixteen bytes or more"
KEY = "sk-id1-secret"


def record(public_id: str = "id1", version: int = 1, **more: object) -> KeyRecord:
    digest = key_digest(f"sk-{public_id}-secret", pepper=PEPPER, pepper_version=1)
    return KeyRecord(public_id, f"key {public_id}", "blue", version, digests=(digest,), **more)


@pytest.fixture
def keys() -> KeySet:
    keys = KeySet()
    keys.add_pepper(1, PEPPER)
    keys.replace(1, [record()], now_ns=0)
    return keys


def test_a_digest_is_that_of_the_standard_library() -> None:
    assert key_digest(KEY, pepper=PEPPER).digest == hmac.digest(PEPPER, b"secret", "sha256")
    assert key_digest(KEY, "sha256_secret").digest == hashlib.sha256(b"secret").digest()
    assert key_digest(KEY.encode(), usage.KeyDigestKind.sha256_key).digest == hashlib.sha256(KEY.encode()).digest()
    assert repr(key_digest(KEY, pepper=PEPPER).digest) not in repr(key_digest(KEY, pepper=PEPPER))
    with pytest.raises(Error) as caught:
        key_digest("nosecret")
    assert caught.value.code == "invalid_argument" and "nosecret" not in str(caught.value)


def test_a_key_is_granted_or_has_a_verdict(keys) -> None:
    grant = keys.check(KEY)
    assert grant and (grant.key_id, grant.team_id, grant.version, grant.generation, grant.status) == ("key id1", "blue", 1, 1, 200)
    assert keys.check(KEY.encode()) and "key id1" in repr(grant) and len(keys) == 1
    for key, verdict in (("", "malformed"), ("sk-id9-secret", "unknown"), ("sk-id1-Secret", "wrong_secret")):
        refused = keys.check(key)
        assert not refused and refused.verdict is KeyVerdict[verdict] and refused.status == 401 and refused.key_id == ""
        assert verdict in repr(refused)


def test_windows_rotate_and_revocations_hold(keys) -> None:
    old, new = (key_digest(f"sk-id1-{word}", pepper=PEPPER, pepper_version=1, **window) for word, window in
                (("old", {"not_after_ns": 100}), ("new", {"not_before_ns": 50})))  # fmt: skip
    keys.apply(1, 2, [KeyRecord("id1", version=2, digests=(old, new))], now_ns=5)
    seen = {(word, at): keys.check(f"sk-id1-{word}", wall_ns=at).verdict.name for word in ("old", "new") for at in (49, 50, 99, 100)}
    assert [seen["old", at] for at in (49, 50, 99, 100)] == ["accepted"] * 3 + ["expired"]
    assert [seen["new", at] for at in (49, 50, 99, 100)] == ["not_yet_valid"] + ["accepted"] * 3
    assert keys.generation == 2 and keys.age_ns(now_ns=12) == 7
    for generation in (2, 1):
        with pytest.raises(Error) as caught:
            keys.replace(generation, [])
        assert caught.value.code == "stale"
    keys.revoke("id1")
    keys.replace(3, [record(version=9)])
    assert keys.check(KEY).verdict is KeyVerdict.revoked and keys.revoked == 1 and len(keys) == 0
    keys.replace(4, [record("id2"), KeyRecord("id3", version=REVOKED_FOREVER, revoked=True)])
    assert keys.check("sk-id2-secret") and keys.revoked == 2
    with pytest.raises(Error):
        keys.confirm(3)
    with pytest.raises(ValueError, match="32 bytes"):
        keys.replace(5, [KeyRecord("x", digests=(KeyDigest(b"short"),))])


def test_a_set_that_control_has_forgotten_may_refuse() -> None:
    keys = KeySet(max_age_ns=10, on_stale="refuse")
    assert keys.stale(now_ns=0)
    keys.replace(1, [record()], now_ns=100)
    assert keys.check(KEY, now_ns=105).verdict is KeyVerdict.no_pepper and keys.check(KEY, now_ns=105).status == 503
    keys.add_pepper(1, PEPPER)
    assert keys.check(KEY, now_ns=110) and keys.check(KEY, now_ns=111).verdict is KeyVerdict.stale_set
    keys.confirm(1, now_ns=111)
    assert keys.check(KEY, now_ns=111)
    keys.set_max_age(10, "refuse_new")
    keys.apply(1, 2, [record("id2")], now_ns=111)
    assert keys.check(KEY, now_ns=500) and keys.check("sk-id2-secret", now_ns=500).verdict is KeyVerdict.stale_set


def test_a_set_is_rolled_back_from_the_generation_that_is_there(keys) -> None:
    keys.replace(5, [record("id2")])
    with pytest.raises(Error) as caught:
        keys.roll_back(4, 1, [record()])
    assert caught.value.code == "stale"
    keys.roll_back(5, 1, [record()])
    assert keys.generation == 1 and keys.check(KEY) and not keys.check("sk-id2-secret")


@pytest.fixture
def limits() -> Limits:
    limits = Limits(lease_ns=10 * S)
    limits.set_default_limits("key", [LimitSpec("rpm", amount=2), LimitSpec("once", "concurrency", amount=2)])
    return limits


def charged(limits: Limits, scope: int, *names: str, at: int = 0) -> list[int]:
    return [limits.used(scope, name, now_ns=at, wall_ns=at) for name in names]


def test_what_was_denied_says_why_and_until_when(limits) -> None:
    key = limits.scope("key", "alice")
    assert limits.scope_name(key) == ("key", "alice") and [spec.name for spec in limits.limits(key)] == ["rpm", "once"]
    for remaining in ("1", "0"):
        with limits.reserve([key], now_ns=0) as reservation:
            assert reservation and reservation.open and reservation.status() == 200 and reservation.denied_by is None
            assert reservation.headers["x-ratelimit-remaining-requests"] == remaining
            assert reservation.decision.left["requests"].amount == 2 and list(reservation.decision.left) == ["requests"]
            assert reservation.settle(now_ns=0) and not reservation.settle() and not reservation.release()
    denied = limits.reserve([key], now_ns=0)
    assert not denied and not denied.open and denied.outcome is LimitOutcome.rate_exceeded and denied.status(403) == 429
    assert denied.denied_by == DeniedBy("key", "alice", "rpm") and denied.decision.retry_after_ns == 30 * S
    assert denied.headers["retry-after"] == "30" and denied.decision.reset_ns is None and "rate_exceeded" in repr(denied)
    assert denied.progress(Usage()) is LimitProgress.stale and not denied.settle()
    assert limits.reserve([key], now_ns=30 * S).release(now_ns=30 * S)
    stats = limits.statistics()
    assert (stats.allowed, stats.denied, stats.open) == (3, 1, 0)


def test_all_limits_of_all_scopes_are_charged_or_none(limits) -> None:
    key, team = limits.scope("key", "alice"), limits.scope("team", "blue")
    day = LimitSpec("day", "budget", "cost_nanos", 100, window=CalendarWindow("day", time_zone="Europe/Berlin"))
    limits.set_limits(team, [day, LimitSpec("shadow", "rate", "input_tokens", 1, shadow=True)])
    assert limits.limits(team)[0] == LimitSpec(
        "day", usage.LimitKind.budget, usage.LimitUnit.cost_nanos, 100, window=CalendarWindow(usage.CalendarUnit.day, time_zone="Europe/Berlin"),
        burst=limits.limits(team)[0].burst)  # fmt: skip
    with limits.reserve([key, team], input_tokens=5, cost_picos=99_500, now_ns=0, wall_ns=0) as reservation:
        assert charged(limits, team, "day") == [100] and charged(limits, key, "rpm", "once") == [1, 1]
        assert reservation.decision.shadow_denied and reservation.shadow_denied_by == DeniedBy("team", "blue", "shadow")
        assert limits.reserve([team], cost_picos=1, now_ns=0, wall_ns=0).outcome is LimitOutcome.budget_exceeded
        denied = limits.reserve([key, team], cost_picos=1, now_ns=0, wall_ns=0)
        assert denied.status() == 402 and denied.status(403) == 403 and denied.decision.reset_ns == 23 * 3600 * S
        assert "retry-after" not in denied.headers and charged(limits, key, "rpm", "once") == [1, 1]
        reservation.used(Usage(input_tokens=5), 40_000)
        reservation.settle(now_ns=0, wall_ns=0)
    assert charged(limits, team, "day") == [40] and charged(limits, key, "once") == [0]
    assert limits.reserve([team], cost_picos=10**9, now_ns=0, wall_ns=0).outcome is LimitOutcome.larger_than_limit


YEARS = CalendarWindow("year", 1_000)


class Refused(Exception):
    status = 429


@pytest.mark.parametrize(
    ("error", "left"),
    [(None, [1, 70]), (RuntimeError(), [1, 70]), (asyncio.CancelledError(), [1, 70]), (ConnectionRefusedError(), [0, 0]), (Refused(), [1, 0])],
)
def test_the_end_of_a_block_settles_or_releases(error, left) -> None:
    limits = Limits()
    scope = limits.scope("key", "a")
    limits.set_limits(scope, [LimitSpec(name, "budget", unit, 1_000, window=YEARS) for name, unit in (("n", "requests"), ("t", "total_tokens"))])

    async def request() -> None:
        async with limits.reserve([scope], input_tokens=60, output_tokens=100) as reservation:
            reservation.used(Usage(output_tokens=10))  # input stays as reserved
            if error is not None:
                raise error

    with contextlib.nullcontext() if error is None else pytest.raises(type(error)):
        asyncio.run(request())
    now = {"now_ns": time.monotonic_ns(), "wall_ns": time.time_ns()}
    assert [limits.used(scope, name, **now) for name in ("n", "t")] == left
    assert limits.statistics().open == 0


def test_what_nobody_settles_is_settled_with_a_warning_or_by_its_lease(limits) -> None:
    key = limits.scope("key", "a")
    lost = limits.reserve([key], now_ns=0, wall_ns=0)
    with pytest.warns(ResourceWarning, match="never settled"):
        del lost
        gc.collect()
    assert limits.statistics().open == 0
    limits = Limits(lease_ns=10 * S)  # that has not seen today's time
    key = limits.scope("key", "a")
    number = limits.reserve([key], now_ns=0, wall_ns=0).detach()
    limits.extend(number, now_ns=9 * S)
    assert limits.advance(now_ns=15 * S, wall_ns=0) == 0 and limits.advance(now_ns=20 * S, wall_ns=0) == 1
    with pytest.raises(Error) as caught:
        limits.settle(number, now_ns=20 * S, wall_ns=0)
    assert caught.value.code == "stale" and limits.statistics().expired == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with limits.reserve([key], now_ns=100 * S, wall_ns=0):
            limits.advance(now_ns=200 * S, wall_ns=0)  # a lease that ended is no error at the end


def test_a_stream_stops_when_its_budget_is_gone() -> None:
    limits = Limits()
    team = limits.scope("team", "t")
    limits.set_limits(team, [LimitSpec("day", "budget", "output_tokens", 100, window=CalendarWindow("day"), hard_stop=True)])
    with limits.reserve([limits.scope("key", "a")], now_ns=0, wall_ns=0) as reservation:
        assert not reservation.decision.may_stop
    with limits.reserve([team], output_tokens=50, now_ns=0, wall_ns=0) as reservation:
        assert reservation.decision.may_stop
        states = [reservation.progress(Usage(output_tokens=n), now_ns=0, wall_ns=0) for n in (40, 90, 120)]
        assert states == [LimitProgress.go_on, LimitProgress.go_on, LimitProgress.stop]
        reservation.used(Usage(output_tokens=120))


def test_faulty_limits_and_scopes_are_refused(limits) -> None:
    key = limits.scope("key", "a")
    for specs in ([LimitSpec("a", amount=-1)], [LimitSpec("a", amount=1)] * 2, [LimitSpec("", amount=1)],
                  [LimitSpec("z", "budget", amount=1, window=CalendarWindow(time_zone="Mars/North"))]):  # fmt: skip
        with pytest.raises(Error) as caught:
            limits.set_limits(key, specs)
        assert caught.value.code == "invalid_argument"
    with pytest.raises(ValueError, match="LimitKind"):
        limits.set_limits(key, [LimitSpec("a", "sometimes")])
    with pytest.raises(Error):
        limits.scope("", "x")
    assert limits.reserve([99]).outcome is LimitOutcome.invalid and limits.reserve([99]).status() == 500
    with pytest.raises(Error) as caught:
        limits.used(key, "nothing")
    assert caught.value.code == "not_found"


def test_threads_never_pass_more_than_there_is() -> None:
    limits = Limits()
    team = limits.scope("team", "t")
    limits.set_limits(team, [LimitSpec("all", "budget", "total_tokens", 5_000, window=CalendarWindow("year"))])
    passed: list[int] = []

    def spend() -> None:
        for _ in range(200):
            with limits.reserve([team], output_tokens=20, wall_ns=0) as reservation:
                if reservation:
                    reservation.used(Usage(input_tokens=0, output_tokens=7))
                    reservation.settle(wall_ns=0)
                    passed.append(7)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 4_900 < sum(passed) <= 5_000 and limits.used(team, "all", wall_ns=0) == sum(passed)
