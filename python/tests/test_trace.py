"""Traces, decision logs and simulations. The digests are those of tests/trace/forms_test.cpp and tests/capi/trace_test.c."""

from __future__ import annotations

import dataclasses
import gzip
import threading

import numpy
import pytest
from conftest import ROOT

import warmroute
from warmroute import trace

REPOSITORY = ROOT
DATA = REPOSITORY / "tests" / "data" / "traces"
SECOND = 1_000_000_000

LINES = (
    '{"timestamp": 1, "input_length": 600, "output_length": 2, "hash_ids": [5, 6]}\n'
    "\n"
    '{"timestamp": 1,\n'
    '{"timestamp": 3, "input_length": 7, "output_length": 2, "session_id": "a"}\n'
)


def digest(records) -> int:
    """FNV-1a over a line per record with all of its fields."""
    value = 14695981039346656037
    for r in records:
        line = "".join(f"{block} " for block in r.blocks.tolist()) + f"{r.model},{r.adapter},{r.request_class},"
        known = [-1 if count is None else count for count in (r.max_output_tokens, r.cached_tokens, r.ttft_us)]
        line += f"{r.arrival_us},{r.input_tokens},{r.output_tokens},{r.session},{r.block_tokens},"
        line += ",".join(map(str, known)) + f",{-999 if r.priority is None else r.priority},"
        line += f"{-1 if r.stream is None else int(r.stream)},{int(r.cancelled)},{r.follows},{r.think_us}\n"
        for byte in line.encode():
            value = (value ^ byte) * 1099511628211 % 2**64
    return value


FILES = [
    (DATA / "azure_code_120.csv", "azure", 120, 1376176534401509859),
    (DATA / "weka_4.jsonl", "weka", 330, 16165924615425173174),
    (DATA / "ragpulse" / "0_trace.jsonl", "ragpulse", 80, 14884271213351314556),
    (REPOSITORY / "benchmarks" / "data" / "mooncake_conversation_1200.jsonl", "mooncake", 1200, 5968675010914389020),
]


@pytest.mark.skipif(not DATA.exists(), reason="an sdist has no traces")
@pytest.mark.parametrize(("path", "form", "count", "wanted"), FILES, ids=[form for _, form, _, _ in FILES])
def test_published_forms_are_read_as_in_cpp(path, form, count, wanted):
    reader = trace.TraceReader(path)
    records = list(reader)
    assert len(records) == count
    assert reader.format == trace.detect_trace_format(str(path)) == trace.TraceFormat[form]
    assert digest(records) == wanted


def test_a_broken_line_is_told_with_its_number_and_the_next_one_is_read():
    reader = trace.TraceReader(text=LINES)
    assert next(reader).blocks.tolist() == [5, 6]
    with pytest.raises(warmroute.Error, match=r":3: ") as caught:
        next(reader)
    assert (caught.value.code, caught.value.offset) == ("invalid_json", 79)
    record = next(reader)
    assert (record.input_tokens, record.block_tokens, reader.line) == (7, 512, 4)
    assert record.session != 0 and record.stream is None and record.priority is None
    assert len(record.blocks) == 0
    with pytest.raises(StopIteration):
        next(reader)


def test_limits_and_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(warmroute.Error, match="t.*:1: ") as caught:
        next(trace.TraceReader(text=LINES.encode(), max_tokens=500))
    assert caught.value.code == "value_out_of_range"
    with pytest.raises(warmroute.Error) as caught:
        next(trace.TraceReader(text="nobody knows this\n"))
    assert caught.value.code == "unsupported"
    with pytest.raises(warmroute.Error) as caught:
        trace.TraceReader(tmp_path / "none")
    assert caught.value.code == "io"
    with pytest.raises(warmroute.Error):
        trace.detect_trace_format(tmp_path / "none")
    with pytest.raises(TypeError, match="either"):
        trace.TraceReader()
    with pytest.raises(TypeError, match="either"):
        trace.TraceReader("a", text="b")
    with pytest.raises(ValueError, match="is no TraceFormat"):
        trace.TraceReader(text="", format="parquet")


FULL = {
    "arrival_us": 2_500_000,
    "input_tokens": 1000,
    "output_tokens": 30,
    "session": 0xFEDCBA9876543210,
    "blocks": numpy.array([7, 2**64 - 1], dtype=numpy.uint64),
    "model": 'm "1"',
    "adapter": "lora",
    "request_class": "chat",
    "priority": -2,
    "max_output_tokens": 64,
    "cached_tokens": 0,
    "ttft_us": 125_000,
    "stream": False,
    "cancelled": True,
    "follows": 1,
    "think_us": 4000,
}


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path, name):
    first, full = trace.TraceRecord(input_tokens=5, output_tokens=1), trace.TraceRecord(**FULL)
    path = tmp_path / name
    with trace.TraceWriter(path) as writer:
        writer.write(first)
        with pytest.raises(warmroute.Error) as caught:
            writer.write(trace.TraceRecord(input_tokens=5, block_tokens=7))
        assert caught.value.code == "unsupported"
        writer.write(full)
    assert writer.closed
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(first)
    assert list(trace.TraceReader(path)) == [first, full]
    assert first != full and len({first, full, trace.TraceRecord(**FULL)}) == 2
    written = path.read_bytes()
    text = (gzip.decompress(written) if name.endswith("gz") else written).decode()
    assert text == first.mooncake_line() + full.mooncake_line()
    for field, value in FULL.items():
        if field != "blocks":
            assert getattr(full, field) == value
    assert not full.blocks.flags.writeable
    assert "2 blocks" in repr(full)


def serve(router: warmroute.Router, requests: int = 60) -> None:
    ids = [router.add_replica(name, now_ns=0) for name in ("gpu-0", "gpu-1")]
    tokens = numpy.arange(3, 643, dtype=numpy.uint32)
    router.blocks_stored(ids[1], numpy.array([91, 92], dtype=numpy.uint64), now_ns=SECOND, token_ids=tokens[:32])
    for i in range(requests):
        now = (i + 2) * SECOND
        if i % 2:
            replica, number = router.route_tokens(tokens[: 64 + 8 * i], now)
            assert replica > 0
            router.first_token(number, now + 1000)
            router.finish(number, now + 2000, cached_tokens=0, output_tokens=20)
        else:
            ticket = router.route(tokens[: 64 + 8 * i], now, session="secret-session")
            ticket.first_token(now + 1000)
            ticket.usage(cached_tokens=0, output_tokens=20)
            ticket.finish(now + 2000)


def test_a_recorded_router_plays_again_to_the_same_decisions(tmp_path):
    path = tmp_path / "calls.decisions"
    policy = warmroute.Policy(gamma=0.1)
    router = warmroute.Router(policy, record=path, record_key=bytes(range(16)))
    serve(router)
    router.flush_recording()
    recording = router.recording
    assert recording is not None and not recording.ended
    assert recording.records == 4 + 3 * 60
    assert router.policy == policy
    log = trace.DecisionLog(path)
    records = list(log)
    assert [r.number for r in records] == list(range(recording.records))
    assert log.torn_bytes == 0
    assert [r.call.name for r in records[:4]] == ["set_policy", "add_replica", "add_replica", "blocks_stored"]
    routed = [r for r in records if r.call is trace.DecisionCall.route]
    assert len(routed) == 60
    assert all(r.decision is not None and r.decision.routed and len(r.blocks) >= 4 for r in routed)
    assert all(r.decision is None for r in records if r not in routed)
    assert records[1].replica == router.find_replica("gpu-0")
    finished = next(r for r in records if r.call is trace.DecisionCall.finish)
    assert finished.ticket and finished.done and finished.error is None
    entry = routed[0].to_dict(blocks=True)
    assert entry["call"] == "route" and entry["decision"]["verdict"] == "routed"
    assert len(entry["blocks"]) == len(routed[0].blocks)
    assert "secret" not in routed[0].to_json(blocks=True) and b"secret" not in path.read_bytes()

    same = trace.replay(path)
    assert same.identical and same.decisions == 60 and same.records == recording.records
    assert same.first_difference is None
    other = trace.replay(path, change={"algorithm": "round_robin"})
    assert not other.identical and other.other_choices > 10
    first = other.first_other_choice
    assert first is not None and first.recorded is not None and first.replayed is not None
    assert first.recorded.replica != first.replayed.replica
    assert first.call is trace.DecisionCall.route
    assert trace.replay(path, max_records=5).records == 5
    with pytest.raises(warmroute.Error) as caught:
        trace.replay(path, change='{"algorythm": 1}')
    assert caught.value.code == "invalid_argument"


def test_a_recording_ends_when_it_is_full_and_the_router_goes_on(tmp_path):
    router = warmroute.Router(record=tmp_path / "log", record_max_bytes=4000)
    serve(router)
    recording = router.recording
    assert recording is not None and recording.ended and recording.reason == "the log has max_bytes"
    assert recording.records + recording.unrecorded == 3 + 3 * 60
    with pytest.raises(warmroute.Error) as caught:
        router.flush_recording()
    assert caught.value.code == "io"


def test_what_cannot_be_recorded_or_read_is_refused(tmp_path):
    with pytest.raises(warmroute.Error) as caught:
        warmroute.Router(record=tmp_path / "no" / "folder")
    assert caught.value.code == "io"
    with pytest.raises(ValueError, match="16 random bytes"):
        warmroute.Router(record=tmp_path / "log", record_key=b"short")
    plain = warmroute.Router()
    assert plain.recording is None
    with pytest.raises(warmroute.Error) as caught:
        plain.flush_recording()
    assert caught.value.code == "unsupported"
    with pytest.raises(warmroute.Error) as caught:
        trace.DecisionLog(tmp_path / "none")
    assert caught.value.code == "io"
    (tmp_path / "other").write_bytes(b"this is no log of decisions")
    with pytest.raises(warmroute.Error) as caught:
        trace.replay(tmp_path / "other")
    assert caught.value.code == "malformed"


def test_threads_and_log_callbacks_are_recorded_without_a_deadlock(tmp_path):
    lines: list[str] = []
    router = warmroute.Router(record=tmp_path / "log", log=lambda _level, message: lines.append(str(message)))
    serve(router, 2)
    tokens = numpy.arange(200, dtype=numpy.uint32)

    def work() -> None:
        for i in range(200):
            replica, ticket = router.route_tokens(tokens, 100 * SECOND + i)
            assert replica > 0
            router.statistics()
            router.finish(ticket, 100 * SECOND + i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    router.flush_recording()
    assert trace.replay(tmp_path / "log").identical


def test_learned_rates_and_pairs_are_told_and_outlive_a_restart():
    key = bytes(range(32))
    router = warmroute.Router(warmroute.Policy(disaggregate="always"))
    prefill = router.add_replica("p", 0, role="prefill")
    router.add_replica("d", 0, role="decode")
    before = router.statistics()
    for i in range(40):
        now = (2 * i + 1) * SECOND
        tokens = numpy.arange(i * 1000, i * 1000 + 640, dtype=numpy.uint32)
        ticket = router.route(tokens, now)
        assert ticket.decision.split is warmroute.Split.pair
        ticket.first_token(now + 20_000_000)
        router.transfer_done(ticket.number, now + 25_000_000)
        ticket.usage(input_tokens=640, cached_tokens=0, output_tokens=100)
        ticket.finish(now + SECOND)
    statistics = router.statistics()
    assert statistics.splits["pair"] == statistics.transfers_done == 40
    assert statistics.transfer_ns == 40 * 5_000_000 and statistics.transfers_timed_out == 0
    row = statistics.replicas[0]
    assert row.role is warmroute.Role.prefill and 0 < row.prefill_share < 1
    rates = statistics.learned_rates(prefill)
    assert rates is not None and rates.samples >= 40
    assert rates.declared["token_ps"] == warmroute.Rates().token_ps
    assert statistics.learned_rates(12345) is None

    served = statistics.served_since(before, 80)
    assert served == warmroute.ServedTokens(40 * 640, 40 * 640, 40 * 100, 40, 80)
    assert statistics.served_since(None, 80) == served
    busy = dataclasses.replace(served, seconds=1)
    ratio = warmroute.advise_ratio(busy, warmroute.Rates(), 30_000_000, 8)
    assert ratio.prefill + ratio.decode == 8 and ratio.prefill_busy > 0
    with pytest.raises(ValueError, match="absurd"):
        warmroute.advise_ratio(busy, warmroute.Rates(), -1, 8)

    fresh = warmroute.Router(warmroute.Policy(disaggregate="always"))
    again = fresh.add_replica("p", 0, role="prefill")
    fresh.add_replica("d", 0, role="decode")
    report = fresh.import_caches(router.export_caches(key, 90 * SECOND), key, SECOND)
    assert report["rates_restored"] == 1
    assert fresh.statistics().learned_rates(again) == rates


def records_of_sessions(sessions: int = 39, turns: int = 4) -> list[trace.TraceRecord]:
    out = []
    for turn in range(turns):
        for session in range(sessions):
            blocks = numpy.array([session * 100 + i for i in range(4 + 2 * turn)], dtype=numpy.uint64)
            out.append(
                trace.TraceRecord(
                    arrival_us=(turn * sessions + session) * 50_000,
                    input_tokens=len(blocks) * 512 + 100,
                    output_tokens=20,
                    blocks=blocks,
                )
            )
    return out


def test_a_simulation_gives_equal_figures_for_equal_arguments_and_tells_policies_apart():
    workload = trace.Workload.open_loop(records_of_sessions()).at_load(0.9, "70b-8xh100", 4)
    assert len(workload) == 156 and not workload.closed_loop
    ours = trace.simulate(workload, profile="70b-8xh100", replicas=4, view="own-approx", seed=3)
    assert ours == trace.simulate(workload, profile="70b-8xh100", replicas=4, view="own-approx", seed=3)
    assert ours.requests == ours.completed == 156
    assert 0 < ours.hit_ratio <= ours.bound_ratio < 1
    assert ours.ttft.p50_us <= ours.ttft.p99_us <= ours.ttft.max_us
    turns = trace.simulate(workload, profile="70b-8xh100", replicas=4, rule="rr")
    assert turns.hit_ratio < ours.hit_ratio
    other = trace.simulate(workload, profile="70b-8xh100", replicas=4, policy=warmroute.Policy(algorithm="random"))
    assert other.hit_ratio < ours.hit_ratio
    assert ours.to_dict()["ttft"]["mean_us"] == ours.ttft.mean_us
    churned = trace.simulate(workload, profile="70b-8xh100", replicas=4, churn="1 remove 3, 2 add")
    assert churned.completed == 156
    closed = trace.Workload.hot_prefix(agents=5, turns=2)
    assert closed.closed_loop and len(closed) == 10
    assert trace.simulate(closed, profile="8b-h100", replicas=2).completed == 10
    assert trace.simulate(records_of_sessions(4, 1), profile="8b-h100", replicas=2).completed == 4


def test_a_simulation_of_several_routers_is_told_of_their_ring_and_of_what_they_share():
    workload = trace.Workload.open_loop(records_of_sessions()).at_load(0.9, "70b-8xh100", 4)

    def hits(**options):
        return trace.simulate(workload, profile="70b-8xh100", replicas=4, view="own-approx", **options).hit_ratio

    alone, sprayed = hits(), hits(routers=4)
    assert sprayed < alone
    assert hits(routers=4, gateway_ring=True) > sprayed
    assert hits(routers=4, share_loads_us=100_000, share_placements=True) > sprayed
    slow = trace.simulate(workload, profile="70b-8xh100", replicas=4, routers=4, gateway_ring=True, forward_us=300_000)
    quick = trace.simulate(workload, profile="70b-8xh100", replicas=4, routers=4, gateway_ring=True)
    assert slow.ttft.mean_us > quick.ttft.mean_us + 100_000


def test_a_simulation_knows_unequal_caches_and_events_that_are_late_or_lost():
    workload = trace.Workload.open_loop(records_of_sessions()).at_load(0.9, "70b-8xh100", 4)

    def run(**options):
        return trace.simulate(workload, profile="70b-8xh100", replicas=4, **options)

    assert run(capacities=[8_192]).evictions > run().evictions == 0
    assert run(view="stale", event_loss=1.0, rule="llmd").hit_ratio < run(view="stale", rule="llmd").hit_ratio
    assert run(view="stale", event_delay_us=60_000_000, rule="llmd").hit_ratio < run(view="stale", rule="llmd").hit_ratio
    assert run(view="stale", snapshot_us=5_000_000, rule="least") != run(view="stale", rule="least")
    assert run(view="stale", routers=4, waiting_tokens=True) != run(view="stale", routers=4)
    with pytest.raises(ValueError, match="event_loss"):
        run(event_loss=1.5)
    for delay in (-1, 2**63 - 1):
        with pytest.raises(warmroute.Error, match="delays of events"):
            run(view="stale", event_delay_us=delay)


def test_a_simulation_refuses_what_it_does_not_know():
    workload = trace.Workload.open_loop(records_of_sessions(2, 1))
    assert "70b-8xh100" in trace.hardware_profiles() and "rr" in trace.routing_rules()
    assert "perfect" in trace.simulation_views()
    with pytest.raises(ValueError, match="is no profile"):
        trace.simulate(workload, profile="abacus")
    with pytest.raises(ValueError, match="is no view"):
        trace.simulate(workload, profile="8b-h100", view="clairvoyant")
    with pytest.raises(warmroute.Error) as caught:
        trace.simulate(workload, profile="8b-h100", rule="nobody")
    assert caught.value.code == "invalid_argument"
    with pytest.raises(warmroute.Error):
        trace.simulate(workload, profile="8b-h100", churn="1 dance 3")
    with pytest.raises(ValueError, match="load"):
        workload.at_load(0, "8b-h100", 1)


@pytest.mark.skipif(not DATA.exists(), reason="an sdist has no traces")
def test_conversations_of_agents_are_closed_loops():
    workload = trace.Workload.agents(DATA / "weka_4.jsonl", conversations_per_second=1.0)
    assert workload.closed_loop and len(workload) == 330
    with pytest.raises(warmroute.Error):
        trace.Workload.agents(DATA / "none")
