"""Metrics pages, by call and by a poller; its thread's end in every way that it can come."""

from __future__ import annotations

import gc
import http.server
import json
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

import warmroute
from warmroute import EngineCounters, EngineMetrics, Error, MetricsPoller, PrefixUnit, RankReplica, Router, read_engine_metrics

PAGE = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 5.0
vllm:num_requests_running{engine="1",model_name="m"} 7.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} -1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 600.0
vllm:cache_config_info{block_size="32",engine="0",num_gpu_blocks="1000"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 4.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.5
no line
"""


def test_a_page_says_what_it_knows_of_each_rank() -> None:
    reading = read_engine_metrics(PAGE)
    assert (reading.engine, len(reading.ranks), reading.shared, reading.skipped_lines) == ("vllm", 2, None, 1)
    first, second = reading.ranks
    assert (first.dp_rank, first.model, first.prefix_unit) == (0, "m", PrefixUnit.tokens)
    assert first.ttft is not None and first.ttft.buckets == ((0.1, 3), (float("inf"), 4)) and first.ttft.sum_s == 0.5
    assert reading.signals()[0] == {
        "running": 5, "waiting": 2, "kv_usage": 0.25, "block_tokens": 32, "block_count": 1000, "prefix_queries": 1000, "prefix_hits": 600,
    }  # fmt: skip
    assert second.signals() == {"running": 7} and second.waiting is None
    assert read_engine_metrics(bytearray(PAGE, "ascii"), "vllm") == reading


def test_prompt_tokens_that_wait_become_a_signal_where_the_engine_tells_them(router) -> None:
    a, b, _ = router.replicas()
    metrics = EngineMetrics()
    reading = metrics.read('sglang_num_waiting_reqs{dp_rank="0"} 2\nsglang_num_waiting_uncached_tokens{dp_rank="0"} 900\n')
    assert (reading.engine, reading.ranks[0].waiting, reading.ranks[0].waiting_tokens) == ("sglang", 2, 900)
    assert reading.signals() == {0: {"waiting": 2, "waiting_tokens": 900}}
    assert metrics.apply(router, {0: a}).signals == 2
    router.signal(b, "waiting_tokens", 300)
    router.signal(b, warmroute.Signal.waiting_tokens, 400)
    loads = [r.load.foreign_tokens for r in router.statistics().replicas]
    assert loads == [900, 400, None]
    assert 'warmroute_replica_foreign_prompt_tokens{replica="' in router.prometheus()


def test_what_a_page_says_becomes_the_signals_of_its_replicas(router) -> None:
    a, b, c = router.replicas()
    metrics = EngineMetrics()
    assert metrics.apply(router, {0: a}).signals == 0  # nothing was read yet
    metrics.read(PAGE)
    applied = metrics.apply(router, {0: a, 1: b}, 10**9)
    assert (applied.signals, applied.refused, applied.unmatched_ranks, applied.shared_counters) == (8, 0, 0, 0)
    loads = {r.replica: r.load for r in router.statistics().replicas}
    assert (loads[a].foreign_requests, loads[b].foreign_requests, loads[a].signals_at_ns) == (7, 7, 10**9)
    assert metrics.apply(router, [RankReplica(a, 0, "m"), RankReplica(b, 1, "other")]).unmatched_ranks == 1
    assert metrics.apply(router, a).unmatched_ranks == 2  # whose are two ranks?
    metrics.read("tgi_queue_size 3\ntgi_batch_current_size 8\n")
    assert metrics.apply(router, c).signals == 2
    router.remove_replica(c)
    assert metrics.apply(router, c).refused == 2


def test_the_engines_hit_ratio_stands_beside_what_was_matched(router, prompt) -> None:
    a = next(iter(router.replicas()))
    for _ in range(2):
        with router.route(prompt, pinned=a) as ticket:
            ticket.first_token()
    metrics = EngineMetrics()
    metrics.read(PAGE)
    metrics.apply(router, {0: a})
    one = next(r for r in router.statistics().replicas if r.replica == a)
    assert (one.input_tokens, one.matched_tokens, one.engine_prefix) == (2_000, 992, None)
    metrics.read(PAGE.replace("1000.0", "1300.0").replace("600.0", "620.0"))
    metrics.apply(router, {0: a}, 10**12)
    gains = next(r for r in router.statistics().replicas if r.replica == a).engine_prefix
    assert gains == warmroute.PrefixGains(300, 20, PrefixUnit.tokens, False, 10**12)
    assert json.dumps(router.statistics().to_dict())
    for queries in (10, 17):
        router.prefix_counters(a, queries, 5, in_blocks=True, shared=True)
    gains = next(r for r in router.statistics().replicas if r.replica == a).engine_prefix
    assert gains is not None and (gains.queries, gains.hits, gains.unit, gains.shared) == (7, 0, PrefixUnit.blocks, True)
    with pytest.raises(Error, match="hits"):
        router.prefix_counters(a, 1, 2)


def test_counters_are_compared_with_those_of_the_page_before() -> None:
    metrics, counters = EngineMetrics(), EngineCounters()
    metrics.read(PAGE)
    assert counters.update(metrics) == []
    metrics.read(PAGE.replace("1000.0", "1300.0"))
    first, second = counters.update(metrics)
    assert (first.dp_rank, first.prefix_queries, first.prefix_hits, first.restarted) == (0, 300, 0, False)
    assert second.prefix_queries is None
    metrics.read(PAGE)
    assert counters.update(metrics)[0].restarted
    counters.clear()
    assert counters.update(metrics) == []


def test_series_without_a_rank_are_read_apart(router) -> None:
    page = "".join(line + "\n" for line in PAGE.splitlines() if "running" in line)
    page += 'vllm:prefix_cache_queries_total{model_name="m"} 1000\nvllm:prefix_cache_hits_total{model_name="m"} 600\n'
    metrics = EngineMetrics()
    shared = metrics.read(page).shared
    assert shared is not None and shared.prefix_hits == 600 and shared.running is None
    a, b = list(router.replicas())[:2]
    assert metrics.apply(router, {0: a, 1: b}).shared_counters == 2


def test_pages_and_tables_that_are_none_are_refused() -> None:
    for page, engine, code in (("<html>", "", "malformed"), ("up 1\n", "", "not_found"), (PAGE, "nobody", "invalid_argument")):
        with pytest.raises(Error) as caught:
            read_engine_metrics(page, engine)
        assert caught.value.code == code
    with pytest.raises(Error, match="rows"):
        EngineMetrics(tables=['{"engine":"x","rowz":[]}'])
    mine = {"engine": "mine", "prefixes": ["my_"], "rows": [{"field": "running", "name": "busy"}]}
    assert read_engine_metrics("my_busy 3\n", tables=[mine]).signals() == {None: {"running": 3}}
    tables = [json.loads(table) for table in warmroute.builtin_engine_tables()]
    assert {"vllm", "sglang", "llamacpp"} <= {table["engine"] for table in tables}
    assert EngineMetrics(tables=tables).read(PAGE).engine == "vllm"


class Server:
    """A model server of which only the page is real."""

    def __init__(self) -> None:
        owner = self
        self.page = PAGE
        self.status = 200
        self.asked = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.asked += 1
                body = owner.page.encode()
                self.send_response(owner.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a poller that ends hangs up
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.002)


FAST = {"interval_ns": 5_000_000, "backoff_to_ns": 0}


def test_a_poller_keeps_the_signals_fresh(router, server, clock) -> None:
    a, b, _ = router.replicas()
    pages: list[warmroute.MetricsPage] = []
    with MetricsPoller(router, page=pages.append, **FAST) as poller:
        poller.add(server.url, {0: a, 1: b}, name="server")
        with pytest.raises(Error) as caught:
            poller.add(server.url, name="server")
        assert caught.value.code == "already_exists"
        until(lambda: poller.status("server").scrapes >= 2)
        status = poller.status("server")
        assert status.up and status.engine == "vllm" and status.signals >= 16 and status.age_ns is not None and status.skipped_lines == 1
        assert [s.name for s in poller.statuses()] == ["server"]
        loads = {r.replica: r.load for r in router.statistics().replicas}
        assert (loads[a].foreign_requests, loads[b].foreign_requests) == (7, 7)
        assert 1_000_000 < loads[a].signals_at_ns <= clock.now_ns  # the router's clock, not the system's
        poller.remove("server")
        with pytest.raises(Error) as caught:
            poller.status("server")
        assert caught.value.code == "not_found"
    assert poller.closed and pages[0].target == "server" and pages[0].body.decode() == PAGE and pages[0].took_ns > 0
    poller.close()
    with pytest.raises(ValueError, match="closed"):
        poller.statuses()


def test_without_a_router_pages_go_to_the_callback_and_failures_are_told(server) -> None:
    lines: list[tuple[str, str]] = []
    seen: list[float] = []
    metrics = EngineMetrics()

    def page(page: warmroute.MetricsPage) -> None:
        seen.append(metrics.read(page.body).signals()[0]["running"])
        assert poller.status(server.url) is not None  # every call but close is allowed
        with pytest.raises(RuntimeError, match="callback"):
            poller.close()

    with MetricsPoller(page=page, log=lambda level, line: lines.append((level.name, line)), **FAST) as poller:
        poller.add(server.url)
        until(lambda: len(seen) >= 2)
        server.status = 503
        until(lambda: poller.status(server.url).failures >= 2)
        server.status = 200
        until(lambda: poller.status(server.url).up)
        assert "503" in poller.status(server.url).last_error and poller.status(server.url).signals == 0
    assert set(seen) == {5} and [level for level, _ in lines] == ["warning", "info"]


def test_callbacks_that_raise_harm_nothing(router, server) -> None:
    raised: list[type[BaseException] | None] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: raised.append(unraisable.exc_type)
    try:
        with MetricsPoller(router, page=lambda _: 1 // 0, clock=lambda: 1 // 0, **FAST) as poller:
            poller.add(server.url, next(iter(router.replicas())))
            until(lambda: poller.status(server.url).scrapes >= 2)
            assert poller.status(server.url).up
    finally:
        sys.unraisablehook = hook
    assert set(raised) == {ZeroDivisionError}


def test_bad_options_are_refused(router) -> None:
    for options in ({"interval_ns": 0}, {"timeout_ns": -1}, {"jitter_percent": 100}, {"max_bytes": 0}, {"tables": ["[]"]}):
        with pytest.raises(Error):
            MetricsPoller(router, **options)
    with MetricsPoller(router) as poller:
        for url in ("", "https://a", "ftp://a", "http://a:99999"):
            with pytest.raises(Error) as caught:
                poller.add(url)
            assert caught.value.code == "invalid_argument"


def test_pollers_are_collected_with_what_their_callbacks_hold(server) -> None:
    class Holder:
        pass

    for name in ("page", "log", "clock"):
        router = Router()
        holder = Holder()
        holder.poller = MetricsPoller(router, **{name: lambda *a, holder=holder: 1}, **FAST)
        holder.poller.add(server.url, router.add_replica("a"))
        gone = weakref.ref(holder)
        del holder, router
        gc.collect()
        assert gone() is None, name


def test_a_poller_that_its_own_callback_lets_go_of_ends(server) -> None:
    held: list[MetricsPoller] = []
    gone = threading.Event()

    def page(_: warmroute.MetricsPage) -> None:
        if held:
            held.pop()
            gone.set()

    held.append(MetricsPoller(page=page, **FAST))
    held[0].add(server.url)
    assert gone.wait(20)
    asked = -1
    while asked != server.asked:  # nobody asks any more
        asked = server.asked
        time.sleep(0.1)


END = """
import os, sys, threading, time, warmroute
router = warmroute.Router()
seen = threading.Event()
poller = warmroute.MetricsPoller(router, page=lambda p: seen.set(), log=print, clock=time.monotonic_ns, interval_ns=1_000_000, backoff_to_ns=0)
poller.add(sys.argv[1], router.add_replica("a"))
assert seen.wait(20)
"""


@pytest.mark.parametrize(
    "rest",
    [
        "",  # the interpreter closes it
        "poller.close()",
        "sys.keep = poller",
        "import atexit; atexit.register(lambda: time.sleep(0.05))",
        "raise SystemExit(0)",
        "if os.fork() == 0:\n    del poller\n    sys.exit(0)\nassert os.wait()[1] == 0",
        "if os.fork() == 0:\n    try:\n        poller.statuses()\n    except ValueError:\n        os._exit(0)\n    os._exit(1)\nassert os.wait()[1] == 0",
        "warmroute._background._open.clear()",  # nobody closes it
    ],
)
def test_the_interpreter_ends_while_a_poller_works(server, rest) -> None:
    done = subprocess.run([sys.executable, "-c", END + rest, server.url], capture_output=True, text=True, timeout=60, cwd="/")
    assert done.returncode == 0, done.stderr
