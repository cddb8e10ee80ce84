"""KV events: KvSource over a transport of one's own, KvSubscriber over ZeroMQ where the build has it."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from typing import Any

import numpy
import pytest
from conftest import pack

import warmroute
from warmroute import Error, KvNotice, KvNoticeKind, KvResync, KvSource, KvSourceState, KvSubscriber, Router

TOPIC = b"kv@pod-a@m"
END = 2**64 - 1


def number(seq: int) -> bytes:
    return struct.pack(">Q", seq)


def tokens_of(block: int) -> list[int]:
    return list(range(block * 16, block * 16 + 16))


def stored(block: int) -> bytes:
    """What vLLM publishes when block number `block` of one prompt is stored; engine's names are 200, 201, ..."""
    parent = None if block == 0 else 199 + block
    event = {
        "type": "BlockStored",
        "block_hashes": [200 + block],
        "parent_block_hash": parent,
        "token_ids": tokens_of(block),
        "block_size": 16,
        "lora_id": None,
        "medium": "GPU",
    }
    return pack([40.5, [event], 0])


def removed(block: int) -> bytes:
    return pack([41.0, [{"type": "BlockRemoved", "block_hashes": [200 + block], "medium": "GPU"}], 0])


PROMPT = numpy.arange(3 * 16 + 1, dtype=numpy.uint32)


@pytest.fixture
def heard() -> list[KvNotice]:
    return []


def cached(router: Router, replica: int) -> int:
    return router.peek(PROMPT, pinned=replica).cached_tokens


def test_what_an_engine_publishes_is_believed(router) -> None:
    first, second = list(router.replicas())[:2]
    source = KvSource(router, second)
    assert source.replica == second and source.status().state is KvSourceState.waiting
    source.live([TOPIC, number(0), stored(0)], 5_000_000)
    source.live([bytearray(TOPIC), memoryview(number(1)), bytearray(stored(1))])
    source.live_payload(2, memoryview(stored(2)))
    assert (cached(router, first), cached(router, second)) == (0, 48)
    source.live_payload(3, bytearray(removed(2)))
    assert cached(router, second) == 32 and source.wants_replay() is None
    status = source.status()
    assert (status.state, status.next, status.messages, status.blocks_stored, status.blocks_removed) == (KvSourceState.live, 4, 4, 3, 1)
    assert router.statistics().event_blocks_stored == 3
    del source
    assert cached(router, second) == 32  # what it told stays


@pytest.mark.parametrize("form", ["dealer", "req", "payload"])
def test_a_gap_is_filled_from_the_replay(router, heard, form) -> None:
    replica = next(iter(router.replicas()))
    source = KvSource(router, replica, replay=True, notice=heard.append)
    source.live([TOPIC, number(0), stored(0)])
    source.live([TOPIC, number(2), stored(2)])
    assert source.status().state is KvSourceState.replaying and source.status().held_bytes == len(stored(2))
    assert source.wants_replay() == 1
    assert source.wants_replay() is None  # once per attempt
    for seq in (1, 2):
        if form == "dealer":
            source.replayed([b"", TOPIC, number(seq), stored(seq)])
        elif form == "req":
            source.replayed([number(seq), stored(seq)], socket="req")
        else:
            source.replayed_payload(seq, stored(seq))
    if form == "payload":
        source.replay_ended()
    else:
        source.replayed([b""] * (form == "dealer") + [number(END), b""], socket=form)
    assert cached(router, replica) == 48
    assert [(n.kind, n.from_, n.to) for n in heard] == [(KvNoticeKind.gap, 1, 1), (KvNoticeKind.replay_complete, 1, 2)]
    assert source.status().replayed == 2


def test_a_gap_that_nobody_fills_clears_the_cache_and_orphans_wait(router, heard) -> None:
    replica = next(iter(router.replicas()))
    source = KvSource(router, replica, notice=heard.append)
    source.live_payload(0, stored(0))
    source.live_payload(2, stored(2))
    assert cached(router, replica) == 0 and source.status().orphan_blocks == 1
    assert [n.kind.name for n in heard] == ["gap", "resync", "orphan"]
    assert heard[1].reason is KvResync.gap_without_replay and (heard[2].block, heard[2].parent) == (202, 201)
    source.advance(10**12)
    source.live_payload(0, stored(0))
    assert [n.kind.name for n in heard[3:]] == ["orphan_dropped", "restart"] and cached(router, replica) == 16
    source.live_payload(1, stored(1)[:20])
    assert heard[-1].kind is KvNoticeKind.bad_message and heard[-1].fault == "length_overrun"
    assert source.status().bad_messages == 1 and cached(router, replica) == 0


def test_notices_may_call_everything_and_may_raise(router) -> None:
    replica = next(iter(router.replicas()))
    seen: list[Any] = []

    def notice(n: KvNotice) -> None:
        seen.append((n.kind.name, source.status().gaps, router.statistics().event_orphans))
        raise ZeroDivisionError

    import sys

    source = KvSource(router, replica, notice=notice)
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: seen.append(unraisable.exc_type)
    try:
        source.live_payload(0, stored(0))
        source.live_payload(5, stored(1))
    finally:
        sys.unraisablehook = hook
    assert [s for s in seen if s is ZeroDivisionError] and ("gap", 1) == seen[0][:2]


def test_bad_frames_and_options_are_refused(router) -> None:
    replica = next(iter(router.replicas()))
    source = KvSource(router, replica)
    for frames, code in (([TOPIC, number(0)], "malformed"), ([TOPIC, b"1234567", stored(0)], "malformed"), ([], "malformed"),
                         ([TOPIC, number(END), stored(0)], "value_out_of_range")):  # fmt: skip
        with pytest.raises(Error) as caught:
            source.live(frames)
        assert caught.value.code == code
    for bad in (stored(0), "text", [1, 2, 3], [None], 7):
        with pytest.raises(TypeError):
            source.live(bad)
    with pytest.raises(ValueError, match="dealer"):
        source.replayed([b"", number(0), b""], socket="subscriber")
    assert source.status().messages == 0
    for options in ({"block_size": 0}, {"engine_block_size": 24}, {"replay_attempts": 0}, {"max_message_bytes": 0}, {"orphan_age_ns": -1}):
        with pytest.raises(Error) as caught:
            KvSource(router, replica, **options)
        assert caught.value.code == "invalid_argument"
    router.remove_replica(replica)
    with pytest.raises(Error) as caught:
        KvSource(router, replica)
    assert caught.value.code == "stale"
    source.live_payload(0, stored(0))  # read, and changes nothing
    assert source.status().messages == 1


def test_blocks_are_hashed_as_the_policy_and_the_tenant_say() -> None:
    router = Router(warmroute.Policy(hash_seed=4711))
    ours, theirs, tenants = (router.add_replica(name) for name in "abc")
    for replica, options in ((ours, {}), (theirs, {"hash_seed": 4712}), (tenants, {"isolation_key": "acme"})):
        KvSource(router, replica, **options).live_payload(0, stored(0))
    assert [cached(router, replica) for replica in (ours, theirs, tenants)] == [16, 0, 0]
    assert router.peek(PROMPT, tenant="acme").replica == tenants


def test_blocks_in_a_shared_store_are_every_replicas(router) -> None:
    first, second = list(router.replicas())[:2]
    names = numpy.array([900, 901], dtype=numpy.uint64)
    router.blocks_stored(first, names, token_ids=PROMPT[:32], tier="shared")
    decision = router.peek(PROMPT, pinned=second)
    assert decision.cached_tokens_by_tier == [0, 0, 0, 32] and router.statistics().pools[0].shared_blocks == 2
    router.clear_shared_store("")
    assert router.peek(PROMPT, pinned=second).cached_tokens_by_tier == [0, 0, 0, 0]
    with pytest.raises(Error, match="pool"):
        router.clear_shared_store("no such")


def test_sources_keep_their_router_and_are_collected() -> None:
    class Holder:
        pass

    router = Router()
    holder = Holder()
    source = KvSource(router, router.add_replica("a"), notice=lambda n, holder=holder: None)
    del router
    gc.collect()
    source.live_payload(0, stored(0))
    holder.source = source
    gone = weakref.ref(holder)
    del source, holder
    gc.collect()
    assert gone() is None


def test_threads_may_share_a_source(router) -> None:
    replica = next(iter(router.replicas()))
    source = KvSource(router, replica)
    source.live_payload(0, stored(0))

    def work() -> None:
        for _ in range(200):
            source.live_payload(0, stored(0))  # a restart each time
            source.advance()
            assert source.status().next == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert source.status().restarts == 800 and cached(router, replica) == 16


def test_without_zeromq_a_subscriber_says_so(router) -> None:
    if warmroute.has_zmq:
        KvSubscriber(router).close()
        return
    with pytest.raises(Error, match="ZeroMQ") as caught:
        KvSubscriber(router)
    assert caught.value.code == "unsupported"


@pytest.mark.skipif(not warmroute.has_zmq, reason="built without ZeroMQ")
def test_a_subscriber_listens(clock) -> None:
    zmq = pytest.importorskip("zmq")
    router = Router(clock=clock)
    replica = router.add_replica("a")
    lines: list[str] = []
    with zmq.Context() as context, context.socket(zmq.XPUB) as engine, KvSubscriber(router, log=lambda _, line: lines.append(line)) as subscriber:
        engine.setsockopt(zmq.RCVTIMEO, 20_000)
        port = engine.bind_to_random_port("tcp://127.0.0.1")
        subscriber.add(replica, f"tcp://127.0.0.1:{port}", topic="kv@", isolation_key="acme")
        with pytest.raises(Error) as caught:
            subscriber.add(replica, f"tcp://127.0.0.1:{port}")
        assert caught.value.code == "already_exists"
        assert engine.recv() == b"\x01kv@"
        for seq in range(3):
            engine.send_multipart([TOPIC, number(seq), stored(seq)])
        deadline = threading.Event()
        for _ in range(2_000):
            if subscriber.status(replica).source.messages == 3:
                break
            deadline.wait(0.01)
        status = subscriber.status(replica)
        assert status.connected and status.source.blocks_stored == 3 and subscriber.statuses() == [status]
        assert router.peek(PROMPT, tenant="acme").cached_tokens == 48
        subscriber.remove(replica)
        with pytest.raises(Error):
            subscriber.status(replica)
    assert subscriber.closed and any("connected" in line for line in lines)
    with pytest.raises(ValueError, match="closed"):
        subscriber.statuses()
