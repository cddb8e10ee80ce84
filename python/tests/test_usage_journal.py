"""The journal and the ledger: what is kept, handed over, recovered and summed."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import weakref
from decimal import Decimal

import pytest

from warmroute import Error, usage
from warmroute.usage import (
    Cost,
    Journal,
    JournalCursor,
    JournalKind,
    JournalReader,
    Ledger,
    PriceTable,
    Usage,
    UsageEvent,
    UsageReport,
    UsageSource,
)

H = 3_600_000_000_000
PRICES = {"m": {"input_cost_per_token": 2e-6, "cache_read_input_token_cost": 5e-7, "output_cost_per_token": 8e-6}}
REPORT = UsageReport(
    Usage(input_tokens=1000, cached_input_tokens=600, output_tokens=100), complete=True, source="provider", anomalies=["bad_crc"],
    finish_reason="stop", service_tier="default", model="m", response_id="c1",
)  # fmt: skip
BEGUN = UsageEvent("op", 1, 5, 0, "alice", "blue", "openai", "chat", "m", replica_id="gpu-0", class_id="batch",
                   usage=Usage(input_tokens=900, output_tokens=50), source="estimate")  # fmt: skip


def ended(at: int = 7) -> UsageEvent:
    prices = PriceTable.from_json(PRICES)
    return BEGUN.ended(REPORT, at, cost=prices.cost(REPORT), price_table_version=prices.version)


def test_events_come_back_as_they_went_in(tmp_path) -> None:
    with Journal(tmp_path, sync="each") as journal:
        number = journal.begin(BEGUN)
        journal.end(number, ended())
        other = journal.begin(BEGUN)
        journal.withdraw(other)
        first, second = JournalReader(tmp_path, begins=True), JournalReader(str(tmp_path))
        kinds = [(record.kind.name, record.number) for record in first]
        assert kinds == [("begin", number), ("end", number), ("begin", other), ("withdrawn", other)]
        (record,) = second
        assert record.event == ended() and record.kind is JournalKind.end and record.event.source is UsageSource.provider
        assert record.event.cost is not None and record.event.cost.usd == Decimal("0.0019") and len(record.event.cost.lines) == 3
        assert list(second) == []
        journal.end(journal.begin(BEGUN), ended(8))
        assert [record.event.end_time_ns for record in second] == [8]  # goes on where it was
        for call in (lambda: journal.end(number, ended()), lambda: journal.withdraw(77)):
            with pytest.raises(Error) as caught:
                call()
            assert caught.value.code == "stale"
        journal.end(0, ended())
        stats = journal.statistics()
        assert (stats.begins, stats.ends, stats.open, stats.unbilled, stats.full) == (3, 3, 0, 0, False) and stats.syncs >= 3
    assert journal.closed
    with pytest.raises(ValueError, match="closed"):
        journal.begin(BEGUN)


def test_a_begin_keeps_its_estimate() -> None:
    assert BEGUN.usage.input_tokens == 900 and ended().usage == REPORT.usage
    assert (ended().key_id, ended().response_model, ended().finish_reason, ended().anomalies) == ("alice", "m", "stop", ("bad_crc",))


def test_a_directory_has_one_writer_and_holds_a_journal(tmp_path) -> None:
    with Journal(tmp_path):
        with pytest.raises(Error) as caught:
            Journal(tmp_path)
        assert caught.value.code == "already_exists"
    Journal(tmp_path).close()
    for directory in ("/dev/null/x", "/dev/null"):
        with pytest.raises(Error) as caught:
            Journal(directory)
        assert caught.value.code == "io"
    with pytest.raises(Error):
        JournalReader(tmp_path / "nowhere")


KILLED = """
import os, signal, sys
from warmroute.usage import *
journal = Journal(sys.argv[1])
event = UsageEvent(operation_id="left open", key_id="alice", usage=Usage(input_tokens=900, output_tokens=50), source="estimate")
journal.end(journal.begin(event), event)
journal.begin(event)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_open_is_handed_over_as_incomplete(tmp_path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd="/").returncode == -9
    with Journal(tmp_path) as journal:
        assert journal.statistics().recovered == 1
        records = list(JournalReader(tmp_path, journal.acknowledged))
        assert [r.kind for r in records] == [JournalKind.end, JournalKind.incomplete]
        assert records[1].event.usage == Usage(input_tokens=900, output_tokens=50) and records[1].event.operation_id == "left open"
        assert len({r.event_id for r in records}) == 2
        ledger = Ledger()
        assert ledger.read(JournalReader(tmp_path)) == 2 and ledger.total().incomplete == 2


def test_what_is_acknowledged_is_not_handed_over_again(tmp_path) -> None:
    with Journal(tmp_path, segment_bytes=4_096) as journal:
        for i in range(100):
            journal.end(journal.begin(BEGUN), ended(i))
        reader = JournalReader(tmp_path, journal.acknowledged)
        assert [next(reader).event.end_time_ns for _ in range(60)] == list(range(60))
        cursor = reader.cursor
        journal.acknowledge(cursor)
        journal.acknowledge(JournalCursor(1, 48))  # going back is ignored
        assert journal.acknowledged == cursor == JournalCursor(*tuple(cursor)) and cursor > JournalCursor()
        assert [r.event.end_time_ns for r in JournalReader(tmp_path, journal.acknowledged)] == list(range(60, 100))
        assert len(list(tmp_path.iterdir())) < 20
    with Journal(tmp_path) as journal:
        assert journal.acknowledged == cursor


def test_a_full_disk_refuses_or_serves_unbilled(tmp_path) -> None:
    with Journal(tmp_path / "a", max_bytes=2_000) as journal:
        with pytest.raises(Error) as caught:
            for _ in range(100):
                journal.begin(BEGUN)
        assert caught.value.code == "io" and journal.statistics().full
    with Journal(tmp_path / "b", max_bytes=2_000, on_full="serve_unbilled") as journal:
        assert 0 in [journal.begin(BEGUN) for _ in range(100)] and journal.statistics().unbilled > 50
    with Journal(tmp_path / "c") as journal, pytest.raises(Error) as caught:
        journal.begin(UsageEvent(operation_id="x" * 70_000))
    assert caught.value.code == "invalid_argument"


def test_records_leave_as_json_lines_and_focus_rows(tmp_path) -> None:
    with Journal(tmp_path) as journal:
        journal.end(journal.begin(BEGUN), ended())
        (record,) = JournalReader(tmp_path)
    line = record.json_line()
    out = json.loads(line)
    assert line.endswith("\n") and line.count("\n") == 1 and record.event_id in line
    assert out["gen_ai.usage.input_tokens"] == 1000 and out["gen_ai.request.model"] == "m"
    rows = list(csv.DictReader(io.StringIO(usage.focus_header().rstrip("\r\n") + "\n" + record.focus_rows())))
    assert len(rows) == 3 and sum(Decimal(row["ListCost"]) for row in rows) == Decimal("0.0019")


def test_events_of_another_shape_are_refused(tmp_path) -> None:
    with Journal(tmp_path) as journal:
        for bad in (UsageEvent(key_id=7), UsageEvent(attempt=-1), UsageEvent(usage=None), UsageEvent(cost="free")):
            with pytest.raises((TypeError, RuntimeError, ValueError)):
                journal.begin(bad)
        with pytest.raises(AttributeError):
            journal.begin(object())
        with pytest.raises(ValueError, match="USAGE_ANOMALIES"):
            journal.begin(UsageEvent(anomalies=("haunted",)))
        assert journal.statistics().begins == 0


def test_threads_write_read_and_close_one_journal(tmp_path) -> None:
    journal = Journal(tmp_path)
    ledger = Ledger()
    written: list[int] = []

    def write() -> None:
        try:
            while True:
                number = journal.begin(BEGUN)
                written.append(number)
                journal.end(number, ended())
                ledger.add(ended())
        except ValueError:
            pass  # closed

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    reader = JournalReader(tmp_path)
    seen = 0
    while seen < 300:
        seen += sum(1 for _ in reader)
    journal.close()
    for thread in threads:
        thread.join()
    seen += sum(1 for _ in reader)
    with Journal(tmp_path) as again:  # a begin that was inside when it closed may have no end
        seen += again.statistics().recovered
    assert seen == len(written) == len(set(written)) and seen - 4 <= ledger.total().attempts <= seen


def test_sums_are_exact_by_any_of_the_names() -> None:
    prices = PriceTable.from_json(PRICES)
    ledger = Ledger(prices=prices)
    for i in range(6):
        event = ended((1_000 + i // 2) * H)
        ledger.add(UsageEvent(**{**vars(event), "key_id": "alice" if i % 3 else "bob"}))
    ledger.add(UsageEvent(key_id="bob", request_model="n", usage=Usage(input_tokens=5), cost=Cost(2**62)), incomplete=True)
    ledger.add(UsageEvent(key_id="bob", request_model="n", usage=Usage(output_tokens=5), cost=Cost(2**62), error=True))
    rows = ledger.snapshot(["key"])
    assert [(r.key_id, r.team_id, r.model, r.window_start_ns, r.sums.attempts) for r in rows] == [("alice", "", "", 0, 4), ("bob", "", "", 0, 4)]
    alice, bob = (row.sums for row in rows)
    assert (alice.input_tokens, alice.cached_input_tokens, alice.output_tokens, alice.hit_ratio) == (4_000, 2_400, 400, 0.6)
    assert alice.cost_usd == Decimal("0.0076") and alice.saved_by_cache_usd == Decimal("0.0036")  # 4 x 600 x 1.5e-6
    assert bob.cost_picos == 2 * 1_900_000_000 + 2**63 and (bob.incomplete, bob.errors, bob.unknown_usage) == (2, 1, 2)
    assert [(r.model, r.window_start_ns // H, r.sums.attempts) for r in ledger.snapshot(["model", "window"])] == [
        ("n", 0, 2), ("m", 1_000, 2), ("m", 1_001, 2), ("m", 1_002, 2)]  # fmt: skip
    assert ledger.total().attempts == 8 and ledger.snapshot([])[0].sums == ledger.total() and len(ledger) == len(ledger.snapshot())
    assert ledger.forget_before(1_001 * H) == 2 and ledger.total().attempts == 6 and ledger.overflowed == 0
    assert Ledger().total().hit_ratio is None


def test_a_ledger_prices_anew_what_a_journal_holds(tmp_path) -> None:
    with Journal(tmp_path) as journal:
        for i in range(50):
            journal.end(journal.begin(BEGUN), ended(i))
    cheaper = PriceTable.from_json({"m": {**PRICES["m"], "output_cost_per_token": 0}})
    ledger = Ledger(by=["team"], prices=cheaper, reprice=True)
    gone = weakref.ref(cheaper)
    del cheaper
    gc.collect()
    assert gone() is not None  # the ledger keeps it
    assert ledger.read(JournalReader(tmp_path)) == 50
    assert ledger.total().cost_usd == 50 * Decimal("0.0011")
    del ledger
    gc.collect()
    assert gone() is None
    small = Ledger(max_rows=1, by=("key",))
    for key in "abc":
        small.add(UsageEvent(key_id=key))
    assert small.overflowed == 2 and small.total().attempts == 3 and small.total().unknown_cost == 3
    for bad in ({"by": ["colour"]}, {"window_ns": 0}):
        with pytest.raises(ValueError):
            Ledger(**bad)
    with pytest.raises(ValueError, match="colour"):
        small.snapshot(["colour"])


BUSY = """
import sys, threading, time
from warmroute.usage import *
journal, meter, ledger, limits = Journal(sys.argv[1]), Meter(), Ledger(), Limits()
event = UsageEvent(usage=Usage(input_tokens=900))
piece = b'data: {"choices":[{"delta":{"content":"' + b"x" * 100_000 + b'"}}]}\\n\\n'
def write():
    while True: journal.end(journal.begin(event), event)
def sum_up():
    while True: ledger.read(JournalReader(sys.argv[1])); ledger.snapshot()
def feed():
    while True: meter.feed(piece)
def advance():
    while True: limits.advance()
for work in (write, sum_up, feed, advance) * 2: threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


def test_the_interpreter_ends_quietly_under_threads_that_are_inside(tmp_path) -> None:
    for i in range(2):
        command = [sys.executable, "-X", "dev", "-c", BUSY, str(tmp_path / str(i))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
        assert (done.returncode, done.stderr) == (0, "")


def resident_kib() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_nothing_is_kept_from_requests_that_are_over(tmp_path) -> None:
    limits, ledger, prices = usage.Limits(), Ledger(), PriceTable.from_json(PRICES)
    scope = limits.scope("key", "a")
    body = b'{"model":"m","id":"c1","choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}'

    def requests(count: int) -> None:
        for _ in range(count):
            with limits.reserve([scope], input_tokens=5) as reservation:
                report = usage.read_usage(body)
                cost = prices.cost(report)
                event = BEGUN.ended(report, 7, cost=cost)
                ledger.add(event)
                reservation.used(report.usage, cost.picos)
            try:
                limits.settle(reservation.number)
            except Error:
                pass

    requests(5_000)
    before = resident_kib()
    requests(20_000)
    assert resident_kib() - before < 1_000  # 50 bytes a request
