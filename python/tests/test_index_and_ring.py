"""PrefixIndex with its Match views, HashRing with bounds and movement."""

from __future__ import annotations

import gc
import random

import numpy
import pytest

import warmroute
from warmroute import GatewayRing, HashRing, Policy, PrefixIndex, Request, RingMember, Router


def path(family: int, length: int) -> numpy.ndarray:
    return numpy.arange(family * 1_000_003, family * 1_000_003 + length, dtype=numpy.uint64)


def test_index_agrees_with_a_naive_one() -> None:
    draw = random.Random(5)
    index = PrefixIndex(max_replicas=8)
    naive: list[set[tuple[int, int]]] = [set() for _ in range(8)]  # (family, position)
    for _ in range(2_000):
        replica, family, length = draw.randrange(8), draw.randrange(6), draw.randrange(1, 40)
        action = draw.random()
        if action < 0.6:
            index.store(replica, path(family, length))
            naive[replica] |= {(family, i) for i in range(length)}
        elif action < 0.8:
            first = draw.randrange(length)
            removed = index.remove(replica, path(family, length), first)
            gone = {(family, i) for i in range(first, length)} & naive[replica]
            assert removed == len(gone)
            naive[replica] -= gone
        elif action < 0.83:
            index.clear(replica)
            naive[replica].clear()
        match = index.match(path(family, 40))
        expected = [next((i for i in range(41) if (family, i) not in held), 40) for held in naive]
        assert match.device.tolist() == expected[: len(match)]
        assert not any(expected[len(match) :])
        assert match.best == max(expected)


def test_blocks_may_be_on_a_second_tier_without_being_told_again() -> None:
    index = PrefixIndex(max_replicas=4)
    names = numpy.array([901, 902, 903], dtype=numpy.uint64)
    index.store_event(1, None, names, path(1, 3))
    assert index.hold_event(1, numpy.array([901, 555, 902], dtype=numpy.uint64), tier="host") == 2
    assert index.remove_event(1, names) == 3
    match = index.match(path(1, 3))
    assert (match.device.tolist(), match.host.tolist()) == ([0, 0], [0, 2])
    assert index.hold_event(1, names, tier="shared") == 0  # not a replica's own


def test_match_views_are_read_only_stay_alive_and_show_the_latest_match() -> None:
    index = PrefixIndex(max_replicas=4)
    index.store(1, path(1, 10))
    match = index.match(path(1, 20))
    view = match.device
    assert view.dtype == numpy.uint32 and view.tolist() == [0, 10]
    with pytest.raises(ValueError):
        view[0] = 3
    assert index.match(path(2, 3), match) is match
    assert view.tolist() == [0, 0]
    index.match(path(1, 5), out=match)
    del match, index
    gc.collect()
    assert view.tolist() == [0, 5]


def test_a_match_serves_the_index_that_made_it() -> None:
    small, large = PrefixIndex(max_replicas=4), PrefixIndex(max_replicas=4_000)
    match = small.match(path(1, 1))
    with pytest.raises(ValueError, match="another index"):
        large.match(path(1, 1), match)


def test_tiers_and_events() -> None:
    index = PrefixIndex()
    ids = numpy.array([11, 12, 13], dtype=numpy.uint64)
    index.store_event(0, None, ids[:2], path(1, 2))
    index.store_event(0, 12, ids[2:], path(1, 3)[2:], tier="host")
    match = index.match(path(1, 5))
    assert (match.device[0], match.host[0], match.disk[0]) == (2, 3, 3)
    assert match.has_lower_tiers and index.knows(0, 13) and not index.knows(0, 14)
    assert index.remove_event(0, numpy.array([12, 99], dtype=numpy.uint64)) == 1
    assert index.match(path(1, 5)).device[0] == 1
    with pytest.raises(warmroute.Error) as caught:
        index.store_event(0, 77, ids[:1], path(5, 1))
    assert caught.value.code == "not_found"
    with pytest.raises(warmroute.Error) as caught:
        index.store_event(0, None, ids, path(5, 1))
    assert caught.value.code == "invalid_argument"
    with pytest.raises(warmroute.Error) as caught:
        index.store(5_000, path(1, 1))
    assert caught.value.code == "out_of_range"
    index.advance()
    statistics = index.statistics()
    assert statistics["refused_stores"] == 3 and statistics["bytes"] > 0


def ring_of(count: int) -> HashRing:
    return HashRing([RingMember(f"slot-{i}", i) for i in range(count)], points_per_unit=64)


def keys(count: int) -> numpy.ndarray:
    return warmroute.sequence_hashes(numpy.arange(count, dtype=numpy.uint64))


def test_ring_moves_only_the_share_of_the_member_that_changes() -> None:
    before = ring_of(8)
    after = before.with_removed("slot-3")
    homes, moved = before.homes(keys(20_000)), after.homes(keys(20_000))
    assert homes.dtype == numpy.uint32
    assert set(homes[homes != moved].tolist()) == {3}
    movement = warmroute.movement_between(before, after)
    assert movement.moved_keys == before.shares()["slot-3"]
    assert movement.fraction == pytest.approx(numpy.mean(homes != moved), abs=0.02)
    assert {flow[0] for flow in movement.flows} == {"slot-3"}
    assert sum(flow[2] for flow in movement.flows) == movement.moved_keys
    assert before.movement_to(before).moved_keys == 0
    assert sum(before.shares().values()) == 2**64
    assert after.with_added(RingMember("slot-3", 3)) == before
    assert hash(after.with_added(RingMember("slot-3", 3))) == hash(before)


def test_ring_look_ups_agree_with_one_another() -> None:
    ring = ring_of(5)
    for key in keys(200).tolist():
        assert ring.home(key) == ring.homes(numpy.array([key], dtype=numpy.uint64))[0]
        assert ring.successors(key, 99)[0] == ring.home(key)
        assert sorted(ring.successors(key, 5)) == [0, 1, 2, 3, 4]
        pick = ring.bounded_pick(key, numpy.zeros(5, dtype=numpy.int64), 10)
        assert pick.member == ring.home(key) and not pick.diverted and not pick.over_bound
        loads = numpy.zeros(5, dtype=numpy.int64)
        loads[ring.home(key)] = 1_000
        pick = ring.bounded_pick(key, loads, 10)
        assert pick.diverted and pick.member == ring.successors(key, 2)[1]
        only = [member == 4 for member in range(5)]
        assert ring.bounded_pick(key, loads, eligible=only, order="permuted").member == 4
    assert ring.with_weight("slot-1", 3).points == ring.points + 2 * 64
    assert ring.with_member("slot-1", 77).members[1] == RingMember("slot-1", 77)


def test_the_empty_ring_answers_none() -> None:
    ring = HashRing()
    assert ring.home(5) is None and ring.successors(5, 3) == [] and len(ring) == 0
    assert ring.bounded_pick(5, numpy.zeros(0, dtype=numpy.int64)).member is None


def test_ring_faults_come_all_at_once() -> None:
    with pytest.raises(warmroute.Error) as caught:
        HashRing([RingMember("", 1), RingMember("x", 1, -1.0)])
    assert caught.value.code == "invalid_argument" and ";" in str(caught.value)
    with pytest.raises(warmroute.Error, match="nobody|no member|not") as caught:
        ring_of(2).with_removed("nobody")
    assert caught.value.code == "not_found"
    with pytest.raises(warmroute.Error):
        ring_of(2).bounded_pick(1, numpy.zeros(2, dtype=numpy.int64), factor=0.5)
    with pytest.raises(ValueError, match="member 1"):
        ring_of(2).bounded_pick(1, numpy.zeros(1, dtype=numpy.int64))
    with pytest.raises(TypeError):
        ring_of(2).bounded_pick(1, numpy.zeros(2))


def test_gateways_agree_on_whose_a_request_is_and_forward_it_once() -> None:
    names = ["gw-0", "gw-1", "gw-2"]
    rings = [GatewayRing(names, name) for name in names]
    assert [ring.index for ring in rings] == [0, 1, 2] and len(rings[0]) == 3
    policy = Policy()
    owners = set()
    for first in range(100):
        request = Request(numpy.arange(first * 1000, first * 1000 + 160, dtype=numpy.uint32))
        keys = {ring.key(request, policy) for ring in rings}
        assert len(keys) == 1
        key = keys.pop()
        assert len({ring.owner(key) for ring in rings}) == 1
        assert rings[1].owner(key, forwarded=True) == 1
        owners.add(rings[0].owner(key))
    assert owners == {0, 1, 2}
    rings[0].set_up(1, False)
    assert 1 not in {rings[0].owner(key) for key in range(0, 2**63, 2**56)}
    with pytest.raises(warmroute.Error, match="gw-9"):
        GatewayRing(names, "gw-9")


def test_routers_tell_one_another_what_they_have_in_flight_and_what_went_where() -> None:
    prompt = Request(numpy.arange(160, dtype=numpy.uint32))
    first, second = (Router(clock=lambda: 10**12) for _ in range(2))
    for router in (first, second):
        router.add_replica("gpu-0")
    assert first.loads() == b"" and second.peer_loads(1, b"") == 0
    replica, ticket = first.route_tokens(numpy.arange(160, dtype=numpy.uint32))
    said = first.loads()
    assert isinstance(said, bytes) and said.endswith(b" gpu-0\n")
    assert second.peer_loads(1, said) == 1 and second.peer_loads(1, said.decode()) == 1
    assert second.peek(prompt).expected_wait_ns > 0
    assert second.peer_loads(1, said.replace(b"gpu-0", b"gpu-9")) == 0
    assert second.peek(prompt).expected_wait_ns == 0
    with pytest.raises(warmroute.Error, match="six numbers") as caught:
        second.peer_loads(1, said + b"nonsense\n")
    assert caught.value.code == "invalid_argument" and caught.value.offset == len(said)
    with pytest.raises(warmroute.Error, match="1024"):
        second.peer_loads(1024, said)

    there = second.find_replica("gpu-0")
    assert second.peek(prompt).cached_tokens == 0
    second.peer_placed(there, prompt)
    assert second.peek(prompt).cached_tokens == 144
    assert first.finish(ticket) and first.loads() == b"" and replica >= 0
    second.remove_replica(there)
    with pytest.raises(warmroute.Error) as caught:
        second.peer_placed(there, prompt)
    assert caught.value.code == "stale"
