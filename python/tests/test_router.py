"""Router: membership, the flat and the friendly calls, batches, explanations, statistics, caches, events."""

from __future__ import annotations

import gc
import json
import secrets
import time
import weakref

import numpy
import pytest

import warmroute
from warmroute import Error, Outcome, Reason, Request, Router, Verdict


def test_a_second_turn_goes_where_the_first_was(router, prompt) -> None:
    replica, ticket = router.route_tokens(prompt)
    assert replica in router.replicas() and ticket > 0
    assert router.first_token(ticket) and not router.first_token(ticket)
    assert router.finish(ticket, output_tokens=10) and not router.finish(ticket)
    decision = router.peek(prompt)
    assert decision.replica == replica and decision.cached_tokens == 992 and decision.reason is Reason.best_match
    assert decision.cached_tokens_by_tier == [992, 0, 0, 0] and decision.uncached_tokens == 8
    assert decision.ticket == 0 and decision.best_cached_tokens == 992
    assert decision.expected_ttft_ns == decision.expected_wait_ns + decision.expected_prefill_ns
    assert len(decision.fallbacks) == 2 and replica not in decision.fallbacks
    assert router.statistics().late_calls == 2


def test_all_forms_of_one_prompt_meet_the_same_cache(router, prompt) -> None:
    replica, ticket = router.route_tokens(prompt)
    router.finish(ticket)
    blocks = warmroute.hash_token_blocks(prompt)
    body = json.dumps({"prompt": prompt.tolist()})
    parsed = router.parse_body(body, "completions")
    forms = [
        prompt, Request(prompt), Request(blocks=blocks, input_tokens=1_000), Request(prompt.tobytes()), parsed]
    for form in forms:
        assert router.peek(form).cached_tokens == 992, form
    assert router.peek(blocks).cached_tokens == 976  # as long as its blocks: the last token is always computed
    assert router.peek(body, api="completions").cached_tokens == 992
    assert router.peek(body.encode(), api=warmroute.BodyApi.completions).replica == replica
    for call in (
        lambda: router.route_tokens(prompt.tobytes()),
        lambda: router.route_blocks(blocks, input_tokens=1_000),
        lambda: router.route_blocks(memoryview(blocks)),
        lambda: router.route_body(body, api="completions"),
        lambda: router.route_body(bytearray(body.encode()), api=1),
    ):
        chosen, ticket = call()
        router.finish(ticket)
        assert chosen == replica
    with pytest.raises(TypeError, match="a prompt is"):
        router.peek(3.5)
    with pytest.raises(TypeError):
        router.peek([1, 2, 3])
    with pytest.raises(TypeError):
        router.peek(numpy.arange(9.0))


def test_what_policy_foresees_is_a_verdict_and_no_exception() -> None:
    router = Router(clock=lambda: 5)
    replica, ticket = router.route_tokens(numpy.arange(64, dtype=numpy.uint32))
    assert (Verdict(-replica), ticket) == (Verdict.no_pool, 0)
    with router.route(b'{"model":"m","prompt":"x"}', api="completions") as open_ticket:
        assert not open_ticket and not open_ticket.routed and not open_ticket.first_token()
        assert open_ticket.decision.verdict is Verdict.no_pool and open_ticket.replica == replica
    only = router.add_replica("a", pool="m", adapters=["x"])
    ids = numpy.arange(64, dtype=numpy.uint32)
    assert router.peek(ids, model="m", adapter="y").verdict is Verdict.no_adapter
    assert router.peek(ids, model="m", excluded=[only]).verdict is Verdict.all_excluded
    assert router.peek(ids, model="m", pinned=only).reason is Reason.pinned
    assert router.route_tokens(ids, model="m", excluded=[only])[0] == -Verdict.all_excluded
    assert router.route_tokens(ids, model="m", pinned=only)[0] == only
    small = Router(max_tickets=1)
    small.add_replica("a")
    verdicts = [small.route_tokens(ids)[0] for _ in range(300)]
    assert -Verdict.ticket_table_full in verdicts


def test_slots_of_a_llama_server(prompt) -> None:
    router = warmroute.Router()
    one = warmroute.SlotSpec(1, unified=False, ram_tokens=0)
    replica = router.add_replica("llama", cache_kind="slots", slots=one)
    assert (router.replica(replica).cache_kind, router.replica(replica).slots) == (warmroute.CacheKind.slots, one)
    fork = prompt.copy()
    fork[len(fork) // 2:] += 1
    for tokens in (prompt, fork):
        with router.route(tokens) as ticket:
            ticket.usage(output_tokens=1)
    assert router.peek(prompt).cached_tokens <= len(prompt) // 2  # its tail is gone
    router.update_replica(replica, slots=warmroute.SlotSpec(2))
    assert repr(router.replica(replica).slots) == "SlotSpec(2, unified=True, ram_tokens=65536)"
    assert len({one, warmroute.SlotSpec(1, unified=False, ram_tokens=0), warmroute.SlotSpec()}) == 2
    with pytest.raises(Error):
        router.add_replica("none", cache_kind="slots", slots=warmroute.SlotSpec(0))
    with pytest.raises(ValueError):
        router.add_replica("tree", cache_kind="tree")


def test_membership(router, prompt) -> None:
    replica = router.add_replica(
        "d", dp_rank=2, pool="m", ring_id="slot-9", role="decode", weight=2, adapters=["x", "y"], labels={"zone": "b"},
        rates=warmroute.Rates(token_ps=1), capacity_tokens=640, health="draining", health_reason="starting")
    assert router.find_replica("d", 2) == replica
    with pytest.raises(Error) as caught:
        router.find_replica("d")
    assert caught.value.code == "not_found"
    spec = router.replica(replica)
    assert (spec.name, spec.dp_rank, spec.pool, spec.ring_id, spec.role, spec.weight) == (
        "d", 2, "m", "slot-9", warmroute.Role.decode, 2.0)
    assert (spec.adapters, spec.labels, spec.rates.token_ps, spec.capacity_tokens) == (["x", "y"], {"zone": "b"}, 1, 640)
    assert (spec.health, spec.health_reason) == (warmroute.Health.draining, "starting")
    router.set_health(replica, "up", "ready")
    router.update_replica(replica, weight=3, labels={"zone": "c"}, adapters=[], role="unified")
    spec = router.replica(replica)
    assert (spec.weight, spec.labels, spec.adapters, spec.health) == (3.0, {"zone": "c"}, [], warmroute.Health.up)
    assert (spec.name, spec.ring_id, spec.capacity_tokens) == ("d", "slot-9", 640)
    router.signal(replica, "block_tokens", 16)
    router.signal(replica, warmroute.Signal.block_count, 100)
    router.clear_cache(replica)
    assert len(router.replicas()) == 4
    router.remove_replica(replica)
    for call in (
        lambda: router.replica(replica),
        lambda: router.remove_replica(replica),
        lambda: router.set_health(replica, "up"),
        lambda: router.update_replica(replica, weight=1),
        lambda: router.clear_cache(replica),
        lambda: router.signal(replica, "running", 1),
        lambda: router.blocks_removed(replica, numpy.array([1], dtype=numpy.uint64)),
    ):
        with pytest.raises(Error) as caught:
            call()
        assert caught.value.code == "stale"
    again = router.add_replica("d", dp_rank=2, pool="m")
    assert again != replica and warmroute.replica_slot(again) == warmroute.replica_slot(replica)
    assert warmroute.replica_generation(again) == warmroute.replica_generation(replica) + 1
    for keywords, code in (({"name": "d", "dp_rank": 2}, "already_exists"), ({"name": ""}, "invalid_argument"), ({"name": "z", "weight": -1}, "invalid_argument")):
        with pytest.raises(Error) as caught:
            router.add_replica(**keywords)
        assert caught.value.code == code
    with pytest.raises(TypeError):
        router.replica(-2)


def test_policy_swaps() -> None:
    router = Router(warmroute.Policy(algorithm="random", version=3))
    assert router.policy.algorithm is warmroute.Algorithm.random
    router.set_policy(router.policy.replace(algorithm="round_robin"))
    assert router.statistics().algorithm == "round_robin" and router.statistics().policy_version == 3
    with pytest.raises(Error):
        Router(max_replicas=1).set_policy(warmroute.Policy(block_size=0))


def test_events_by_call(router, prompt) -> None:
    replica = list(router.replicas())[1]
    ids = numpy.array([5, 6, 7], dtype=numpy.uint64)
    router.blocks_stored(replica, ids[:2], token_ids=prompt[:32])
    router.blocks_stored(replica, ids[2:], 6, blocks=warmroute.hash_token_blocks(prompt[32:48]))
    assert router.peek(prompt).cached_tokens == 48 and router.peek(prompt).replica == replica
    assert router.blocks_also_on(replica, "host", numpy.array([7, 99], dtype=numpy.uint64)) == 1
    assert router.blocks_removed(replica, numpy.array([7, 99], dtype=numpy.uint64)) == 1
    assert router.peek(prompt).cached_tokens == 48, "block 7 is left in host memory"
    assert router.blocks_removed(replica, numpy.array([7], dtype=numpy.uint64), tier="host") == 1
    assert router.peek(prompt).cached_tokens == 32
    for keywords, code in (
        ({"ids": ids, "token_ids": prompt[:16]}, "invalid_argument"),
        ({"ids": ids[:1], "parent": 1234, "token_ids": prompt[:16]}, "not_found"),
    ):
        with pytest.raises(Error) as caught:
            router.blocks_stored(replica, **keywords)
        assert caught.value.code == code
    with pytest.raises(TypeError, match="either"):
        router.blocks_stored(replica, ids)
    statistics = router.statistics()
    assert (statistics.event_blocks_stored, statistics.event_blocks_removed, statistics.event_orphans) == (3, 2, 1)
    assert statistics.event_gaps == 1
    assert next(r for r in statistics.replicas if r.replica == replica).reported


def test_batches_decide_as_single_calls_do(prompt) -> None:
    def fresh() -> Router:
        router = Router(clock=lambda: 1_000)
        for name in ("a", "b", "c"):
            router.add_replica(name)
        return router

    prompts = [prompt[: 100 + 37 * i] for i in range(20)]
    single = fresh()
    expected = [single.route_tokens(p, max_output_tokens=50) for p in prompts]
    decisions = fresh().route_batch([Request(p, max_output_tokens=50) for p in prompts])
    assert [(d.replica, d.ticket) for d in decisions] == expected
    ends = numpy.cumsum([len(p) for p in prompts]).astype(numpy.int64)
    replicas, tickets = fresh().route_tokens_batch(numpy.concatenate(prompts), ends, max_output_tokens=50)
    assert list(zip(replicas.tolist(), tickets.tolist())) == expected
    router = fresh()
    assert router.route_batch([]) == []
    assert router.route_tokens_batch(prompt, numpy.zeros(0, dtype=numpy.int64))[0].size == 0
    for bad in ([5, 4], [-1], [1_001]):
        with pytest.raises(ValueError, match="ends"):
            router.route_tokens_batch(prompt, numpy.array(bad, dtype=numpy.int64))
    with pytest.raises(TypeError):
        router.route_batch([prompt])
    assert router.route_tokens_batch(prompt, numpy.array([3], dtype=numpy.int64), model="none")[0][0] >= 0


def test_explanations(router, prompt) -> None:
    with router.route(prompt):
        pass
    router.add_replica("<b>", health="down")
    explanation = router.explain(prompt)
    assert explanation.decision.cached_tokens == 992 and explanation.blocks == 62 and explanation.no_match == ""
    text = str(explanation)
    assert "chosen" in text and "cost ms" in text
    as_dict = explanation.to_dict()
    assert as_dict == json.loads(explanation.to_json()) and as_dict["cached_tokens"] == 992
    assert len(as_dict["candidates"]) == 4 and explanation.names == ["a", "b", "c", "<b>"]
    columns = explanation.columns()
    assert len(columns["replica"]) == 3 and columns["total_ns"].dtype == numpy.int64
    assert len(explanation.columns(eligible_only=False)["replica"]) == 4
    assert columns["cached_tokens"].max() == 992
    chosen = int(columns["replica"][int(columns["total_ns"].argmin())])
    assert chosen == explanation.decision.replica
    html = explanation._repr_html_()
    assert html.count("<tr") == 5 and "&lt;b&gt;" in html and "<b>" not in html
    assert Router().explain(prompt).columns()["replica"].size == 0


def test_a_cost_term_of_ones_own_decides(router, prompt) -> None:
    replicas = list(router.replicas())
    seen = []

    def term(columns):
        seen.append(columns)
        return numpy.where(columns["replica"] == replicas[2], 0, 10**12)

    with router.route_with(term, prompt, max_output_tokens=5) as ticket:
        assert ticket.replica == replicas[2] and ticket.decision.reason is Reason.pinned
    assert set(seen[0]) >= {"replica", "cached_tokens", "requests", "wait_ns", "prefill_ns", "total_ns"}
    with router.route_with(lambda columns: 1, prompt) as ticket:
        assert ticket.replica == replicas[1]
    with router.route_with(lambda columns: numpy.int64(0), prompt, excluded=replicas[:1]) as ticket:
        assert ticket.replica == replicas[1]
    with pytest.raises(ValueError, match="shape"):
        router.route_with(lambda columns: numpy.zeros(7), prompt)
    with pytest.raises(IndexError):
        router.route_with(lambda columns: 3, prompt)
    with pytest.raises(ZeroDivisionError):
        router.route_with(lambda columns: 1 // 0, prompt)
    with router.route_with(lambda columns: 1 // 0, prompt, excluded=replicas) as ticket:
        assert ticket.decision.verdict is Verdict.all_excluded


def test_statistics(router, prompt) -> None:
    with router.route(prompt) as ticket:
        ticket.first_token()
        ticket.usage(input_tokens=1_000, cached_tokens=0, output_tokens=7)
        assert router.statistics().tickets_in_flight == 1
    router.fail(router.route_tokens(prompt)[1], Outcome.timeout)
    statistics = router.statistics()
    assert statistics.verdicts["routed"] == 2 and statistics.outcomes == {**statistics.outcomes, "finished": 1, "timeout": 1}
    assert (statistics.input_tokens, statistics.output_tokens, statistics.cached_reports) == (1_000, 7, 1)
    assert len(statistics.replicas) == 3 and statistics.pools[0].blocks > 0 and statistics.observed_ttft.count == 1
    assert sum(statistics.observed_ttft.buckets) == 1
    assert json.dumps(statistics.to_dict())
    page = router.prometheus()
    assert 'warmroute_decisions_total{verdict="routed"} 2' in page


def test_caches_survive_a_restart(router, prompt) -> None:
    replica, ticket = router.route_tokens(prompt)
    router.first_token(ticket)
    router.finish(ticket)
    router.advance()
    key = secrets.token_bytes(32)
    data = router.export_caches(key)
    assert isinstance(data, bytes) and b"a" * 3 not in data
    second = Router(clock=router_clock())
    for name in ("a", "b", "c"):
        second.add_replica(name)
    report = second.import_caches(bytearray(data), key, away_ns=1_000)
    assert report["replicas_restored"] >= 1 and report["blocks_restored"] == 62
    assert second.peek(prompt).cached_tokens == 992
    for change, code in ((data[:-1], "malformed"), (b"", "malformed"), (data, "invalid_argument")):
        with pytest.raises(Error) as caught:
            second.import_caches(change, secrets.token_bytes(32) if change == data else key)
        assert caught.value.code == code
    with pytest.raises(ValueError, match="32"):
        router.export_caches(b"short")


def router_clock():
    return lambda: 10**12


def test_time_left_out_is_monotonic_ns() -> None:
    router = Router(warmroute.Policy(lease_ns=3_600_000_000_000))
    router.add_replica("a", time.monotonic_ns() - 1)
    _, ticket = router.route_tokens(numpy.arange(16, dtype=numpy.uint32))
    time.sleep(0.05)
    router.first_token(ticket)
    router.finish(ticket, time.monotonic_ns())
    statistics = router.statistics()
    assert statistics.clock_clamped == 0
    assert 45_000_000 < statistics.observed_ttft.sum_ns < 30_000_000_000
    seen = []
    router = Router(clock=lambda: seen.append(1) or 77)
    router.add_replica("a")
    router.advance(5)
    assert len(seen) == 1
    for bad, kind in ((lambda: "noon", TypeError), (lambda: 1 // 0, ZeroDivisionError)):
        with pytest.raises((kind, RuntimeError)):
            Router(clock=bad).add_replica("a")


def test_bad_arguments_are_refused_and_change_nothing(router, prompt) -> None:
    before = router.statistics().to_dict()
    for call in (
        lambda: router.route_tokens(prompt, "noon"),
        lambda: router.route_tokens(prompt, 1.5),
        lambda: router.route_tokens(prompt, modell="x"),
        lambda: router.route_tokens(prompt, session=5),
        lambda: router.route_tokens(None),
        lambda: router.route_blocks(prompt),
        lambda: router.route(prompt, modell="x"),
        lambda: router.route(prompt, max_output_tokens="many"),
        lambda: router.route(prompt, excluded=5),
        lambda: router.finish("x"),
        lambda: router.finish(-1),
        lambda: Request(ids=[1, 2]),
        lambda: Router(log=5),
        lambda: Router(clock="now"),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pytest.raises(ValueError, match="no Outcome"):
        router.fail(1, "no_such")
    assert router.statistics().to_dict() == before


def test_requests_keep_what_they_borrow(router) -> None:
    request = Request(numpy.arange(64, dtype=numpy.uint32).copy(), model="m" * 50, session="s" * 50)
    buffer = bytearray(64)
    other = Request(memoryview(buffer))
    with pytest.raises(BufferError):
        buffer.append(1)
    gc.collect()
    router.finish(router.route_batch([request])[0].ticket)
    del other
    gc.collect()
    buffer.append(1)
    assert request.model == "m" * 50 and "64 token ids" in repr(request)


def test_a_router_that_its_callbacks_refer_to_is_collected() -> None:
    class Holder:
        pass

    for name in ("log", "tokenizer", "clock"):
        holder = Holder()
        holder.router = Router(**{name: lambda *a, holder=holder: 1})
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None, name


def test_a_request_is_refused_when_every_replica_is_past_the_limit() -> None:
    router = warmroute.Router(policy=warmroute.Policy(saturation_wait_ns=1, learn_rates=False))
    router.add_replica("gpu-0", 0)
    with router.route(warmroute.Request(input_tokens=10_000), 0) as refused:
        assert refused.decision.verdict == warmroute.Verdict.saturated
        assert refused.decision.retry_after_ns > 0 and router.requests_in_flight() == 0
    with router.route(warmroute.Request(input_tokens=10_000, priority=1), 0) as urgent:
        assert urgent.decision.verdict == warmroute.Verdict.routed
        assert router.requests_in_flight() == 1 and router.requests_in_flight("other") == 0
    assert router.requests_in_flight() == 0


def test_a_drain_ends_at_its_deadline() -> None:
    router = warmroute.Router()
    replica = router.add_replica("gpu-0", 0, slow_start_ns=5, slow_start_weight=0.5)
    spec = router.replica(replica)
    assert (spec.slow_start_ns, spec.slow_start_weight, spec.drain_until_ns) == (5, 0.5, 0)
    router.drain(replica, 1_000, 10)
    assert router.replica(replica).health == warmroute.Health.draining
    assert router.replica(replica).drain_until_ns == 1_000
    router.advance(1_000)
    assert router.replica(replica).health == warmroute.Health.down


def test_prefill_and_decode_may_run_apart() -> None:
    router = warmroute.Router(warmroute.Policy(disaggregate="always"))
    prefill, decode = router.add_replica("p", 0, role="prefill"), router.add_replica("d", 0, role="decode")
    with router.route(warmroute.Request(input_tokens=5_000), 1) as ticket:
        decision = ticket.decision
        assert decision.split is warmroute.Split.pair
        assert (decision.prefill_replica, decision.replica) == (prefill, decode)
        assert decision.expected_transfer_ns > 0 and decision.decode_cached_tokens == 0
        assert router.transfer_done(decision.ticket, 2) and not router.transfer_done(decision.ticket, 2)
    plain = warmroute.Router()
    plain.add_replica("u", 0)
    with plain.route(warmroute.Request(input_tokens=5_000), 1) as ticket:
        assert ticket.decision.prefill_replica is None and ticket.decision.split is warmroute.Split.off
