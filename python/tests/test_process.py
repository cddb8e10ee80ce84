"""Threads with callbacks, the interpreter's end, subinterpreters, memory, and the examples."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy
import pytest
from conftest import ROOT

import warmroute
from warmroute import Router


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-W", "error", *(["-c", code] if code else []), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/")


def in_threads(count: int, work) -> None:
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    assert not errors, errors[0]


def test_log_lines_come_after_the_call_and_may_call_the_router() -> None:
    lines: list[tuple[str, str]] = []
    router: Router

    def log(level: warmroute.LogLevel, message: str) -> None:
        lines.append((level.name, message))
        assert len(router.replicas()) >= 0 and router.statistics() is not None  # would deadlock under the router's locks
        if message == "replica a added":
            router.add_replica("b")

    router = Router(log=log)
    replica = router.add_replica("a")
    router.set_health(replica, "down", "gone")
    assert ("info", "replica b added") in lines and any(level == "warning" for level, _ in lines)


def test_a_log_callback_that_raises_harms_nothing(capfd) -> None:
    router = Router(log=lambda level, message: 1 // 0)
    seen = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: seen.append(unraisable.exc_type)
    try:
        router.add_replica("a")
        router.add_replica("b")
    finally:
        sys.unraisablehook = hook
    assert seen == [ZeroDivisionError] * 2 and len(router.replicas()) == 2


def test_threads_with_every_callback_neither_deadlock_nor_lose_tickets() -> None:
    lines: list[str] = []

    def tokenizer(prompt: bytes):
        time.sleep(0)  # gives the GIL away inside the callback
        return numpy.frombuffer(prompt[: len(prompt) // 4 * 4], dtype=numpy.uint32).copy()

    router = Router(warmroute.Policy(), log=lambda level, line: lines.append(line), tokenizer=tokenizer, max_replicas=64)
    keep = router.add_replica("keep")
    ids = numpy.arange(4_000, dtype=numpy.uint32)
    ends = numpy.arange(100, 4_001, 100, dtype=numpy.int64)
    long_body = ('{"prompt":"' + "many words " * 1_000 + '"}').encode()

    def work(i: int) -> None:
        for n in range(60):
            kind = (i + n) % 6
            if kind == 0:
                replica = router.add_replica(f"r-{i}-{n}")
                router.set_health(replica, "down", "test")
                router.signal(replica, "block_count", 10)
                router.remove_replica(replica)
            elif kind == 1:
                for ticket in router.route_tokens_batch(ids, ends)[1].tolist():
                    router.finish(ticket)
            elif kind == 2:
                router.finish(router.route_body(long_body, api="completions")[1])
            elif kind == 3:
                with router.route(ids[: 16 * (n + 1)], session=str(i)) as ticket:
                    ticket.first_token()
            elif kind == 4:
                router.set_policy(router.policy.replace(version=n))
                router.advance()
                assert router.prometheus()
            else:
                assert router.explain(ids).decision
                router.blocks_stored(keep, numpy.array([i * 1_000 + n + 1], dtype=numpy.uint64), token_ids=ids[:16])

    in_threads(8, work)
    statistics = router.statistics()
    assert statistics.tickets_in_flight == 0 and statistics.late_calls == 0
    assert sum(line.endswith(" removed") for line in lines) == 80


def test_batches_let_other_threads_run() -> None:
    router = Router(max_tickets=200_000)
    router.add_replica("a")
    ids = numpy.arange(16_000, dtype=numpy.uint32)
    ends = numpy.full(3_000, 0, dtype=numpy.int64)
    ends[-1] = 0
    ends[:] = numpy.linspace(0, 16_000, 3_000).astype(numpy.int64)
    requests = [warmroute.Request(ids) for _ in range(2_000)]
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    old = sys.getswitchinterval()
    sys.setswitchinterval(60)  # so that nobody runs unless the GIL is given away
    try:
        thread.start()
        begin = time.perf_counter()
        router.route_batch(requests)
        end = time.perf_counter()
    finally:
        sys.setswitchinterval(old)
        stop.set()
        thread.join()
    assert sum(begin < t < end for t in ticks) > 0


LIVE = """
import atexit, numpy, threading, warmroute
router = warmroute.Router(log=lambda level, line: None, tokenizer=lambda p: [1, 2], clock=lambda: 5)
router.me = router
replica = router.add_replica("a")
ids = numpy.arange(64, dtype=numpy.uint32)
request = warmroute.Request(ids)
match = warmroute.PrefixIndex().match(numpy.arange(3, dtype=numpy.uint64))
view = match.device
parsed = router.parse_body(b'{"prompt":"x"}', "completions")
blocks = parsed.blocks
number = router.route_tokens(ids)
explanation = router.explain(request)
atexit.register(lambda: router.finish(number[1]))
def work():
    while True: router.route_tokens(ids)
threading.Thread(target=work, daemon=True).start()
"""


@pytest.mark.parametrize("code", [LIVE, LIVE + "import sys; sys.exit(0)", LIVE + "raise SystemExit(0)", LIVE.replace("-X dev", "")])
def test_the_interpreter_ends_quietly_with_live_objects(code) -> None:
    for _ in range(2):
        done = run(code)
        assert (done.returncode, done.stderr) == (0, "")


BUSY = """
import numpy, threading, time, warmroute
router = warmroute.Router(log=lambda level, line: len(line), tokenizer=lambda p: [1] * (len(p) % 7), clock=lambda: 5)
router.add_replica("keep")
ids = numpy.arange(64, dtype=numpy.uint32)
requests = [warmroute.Request(ids)] * 50
body = ('{"prompt":"' + "many words " * 5000 + '"}').encode()
def members():
    while True: router.remove_replica(router.add_replica(threading.current_thread().name))
def batch():
    while True:
        for d in router.route_batch(requests): router.finish(d.ticket)
def bodies():
    while True: router.finish(router.route_body(body, api="completions")[1])
def errors():
    while True:
        try: router.route_body(b"{")
        except warmroute.Error: pass
for work in (members, batch, bodies, errors) * 2: threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


def test_the_interpreter_ends_quietly_under_threads_that_are_inside_the_router() -> None:
    for _ in range(5):
        done = run(BUSY)
        assert (done.returncode, done.stderr) == (0, "")


def test_an_open_ticket_at_the_end_is_quiet_unless_asked() -> None:
    code = "import numpy, warmroute\nr = warmroute.Router(); r.add_replica('a')\nt = r.route(numpy.arange(64, dtype=numpy.uint32))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")


def test_subinterpreters_are_refused_politely() -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters")
    assert interpreters
    code = """
import _xxsubinterpreters as interpreters
one = interpreters.create()
try:
    interpreters.run_string(one, "import warmroute._core")
except interpreters.RunFailedError as error:
    print(error)
else:
    print("imported")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/")
    assert "ImportError" in done.stdout and "interpreter" in done.stdout, done.stdout + done.stderr


def test_nothing_is_kept_from_calls_that_fail_or_end() -> None:
    router = Router()
    router.add_replica("a")
    ids = numpy.arange(64, dtype=numpy.uint32)
    blocks = warmroute.hash_token_blocks(ids)
    body = b'{"prompt":"some words"}'
    text = "a string of its own" * 2
    objects = (ids, blocks, body, text)

    def calls() -> None:
        router.finish(router.route_tokens(ids, session=text)[1])
        router.finish(router.route_blocks(blocks, model=text)[1])
        router.finish(router.route_body(body, api="completions", session=text)[1])
        with router.route(ids, session=text) as ticket:
            ticket.first_token()
        router.peek(warmroute.Request(ids, session=text))
        router.explain(ids).to_dict()
        for bad in (lambda: router.route_tokens(blocks), lambda: router.route_body(b"{", session=text), lambda: router.route(ids, nonsense=text)):
            try:
                bad()
            except (TypeError, ValueError):
                pass

    calls()
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        calls()
    gc.collect()
    assert [sys.getrefcount(o) for o in objects] == before


def resident_kib() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def grown_kib(calls: int) -> int:
    """How much the process grew over so many calls, after as many as fill what is bounded."""
    router = Router(warmroute.Policy(capacity_tokens=16_000))
    router.add_replica("a")
    router.add_replica("b")
    prompts = [numpy.arange(i, i + 64, dtype=numpy.uint32) for i in range(64)]
    body = b'{"model":"m","prompt":"the same few words over and over again, until they fill a block or two, and then some more"}'

    def some(count: int) -> None:
        route, finish, first = router.route_tokens, router.finish, router.first_token
        for i in range(count // 10):
            _, ticket = route(prompts[i % 64], i * 1_000)
            first(ticket, i * 1_000)
            finish(ticket, i * 1_000, cached_tokens=16)
            _, ticket = router.route_body(body, i * 1_000, api="completions")
            router.fail(ticket, "timeout", i * 1_000)
            with router.route(prompts[i % 64], i * 1_000) as held:
                held.first_token(i * 1_000)
            try:
                router.route_body(b"{", i * 1_000)
            except warmroute.Error:
                pass

    some(calls // 5)
    gc.collect()
    before = resident_kib()
    some(calls)
    gc.collect()
    return resident_kib() - before


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_million_calls_keep_no_memory() -> None:
    assert grown_kib(1_000_000) < 1_500  # one byte kept per call would be 1 MiB; an object per call 50


@pytest.mark.long
def test_ten_million_calls_keep_no_memory() -> None:
    assert grown_kib(10_000_000) < 1_500


EXAMPLES = ROOT / "examples" / "python"


@pytest.mark.parametrize("name", ["01_first_route", "03_events_by_call", "04_explain", "05_engine_events", "06_usage", "07_control"])
def test_examples_run(name) -> None:
    if not EXAMPLES.exists():
        pytest.skip("no examples here")
    done = run("", str(EXAMPLES / f"{name}.py"))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") >= 4


def test_the_readme_runs_as_written() -> None:
    text = (ROOT / "python" / "README.md").read_text()
    done = run(text.split("```python\n")[1].split("```")[0])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert lines[2] == "0" and lines[5] == "992"
    done = run(text.split("```python\n")[2].split("```")[0])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Usage(input_tokens=1000, output_tokens=100) 0.002800000000\n"
