"""What a call costs in Python over the same call in C++: one run, one table.

    python benchmarks/python/call_cost.py [--json] [--cpp FOLDER] [--quick]

FOLDER holds cpp_calls, the C++ side (cmake --build <python build> --target warmroute_cpp_calls); without it there are no
ratios. A row is a request's two calls, route and finish. Nanoseconds of the thread's CPU time, the least of several
means: other load on the machine slows caches down, but is not counted. `ai-dynamo-runtime` is measured if it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy

import warmroute

REPLICAS = 8
PROMPTS = 64
NOW = 1_000_000_000


def least_ns(call: Callable[[int], Any], calls: int, repeats: int) -> float:
    least = float("inf")
    for _ in range(repeats):
        begin = time.thread_time_ns()
        for i in range(calls):
            call(i)
        least = min(least, (time.thread_time_ns() - begin) / calls)
    return least


def empty_loop(calls: int, repeats: int) -> float:
    return least_ns(lambda i: None, calls, repeats)


def prompts_of(tokens: int) -> list[Any]:
    return [numpy.arange(p * 100_003, p * 100_003 + tokens, dtype=numpy.uint32) for p in range(PROMPTS)]


def fleet() -> warmroute.Router:
    router = warmroute.Router()
    for i in range(REPLICAS):
        router.add_replica(f"replica-{i}", NOW)
    return router


def body_of(size: int) -> bytes:
    text = ("every word of this prompt counts, and every one is counted. " * (size // 60 + 1))[: size - 120]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "stream": True}).encode()


def our_rows(cpp: Any, calls: int, repeats: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    loop = empty_loop(calls, repeats)

    def row(name: str, call: Callable[[int], Any], cpp_ns: float | None, count: int = calls) -> None:
        python_ns = least_ns(call, count, repeats) - loop
        rows.append({"call": name, "python_ns": python_ns, "cpp_ns": cpp_ns})

    def timed(which: str, *arguments: Any, count: int = calls) -> float | None:
        return None if cpp is None else float(getattr(cpp, which)(*arguments, count, repeats))

    for tokens in (64, 1_000, 10_000):
        prompts = prompts_of(tokens)
        count = calls if tokens < 10_000 else calls // 4
        cpp_ns = timed("tokens", REPLICAS, tokens, count=count)
        router = fleet()

        def flat_tokens(i: int) -> None:
            _, ticket = router.route_tokens(prompts[i % PROMPTS], NOW)
            router.finish(ticket, NOW)

        row(f"route_tokens + finish, {tokens} tokens", flat_tokens, cpp_ns, count)
        blocks = [warmroute.hash_token_blocks(p) for p in prompts]
        router_b = fleet()

        def flat_blocks(i: int) -> None:
            _, ticket = router_b.route_blocks(blocks[i % PROMPTS], NOW)
            router_b.finish(ticket, NOW)

        row(f"route_blocks + finish, {tokens // 16} blocks", flat_blocks, timed("blocks", REPLICAS, tokens, count=count), count)
        if tokens == 1_000:
            router_c = fleet()

            def context(i: int) -> None:
                with router_c.route(prompts[i % PROMPTS], NOW):
                    pass

            row("with route(...) as ticket, 1000 tokens", context, cpp_ns)

            def no_clock(i: int) -> None:
                _, ticket = router_c.route_tokens(prompts[i % PROMPTS])
                router_c.finish(ticket)

            row("route_tokens + finish, now_ns left out", no_clock, cpp_ns)
            raw = [p.tobytes() for p in prompts]

            def from_bytes(i: int) -> None:
                _, ticket = router_c.route_tokens(raw[i % PROMPTS], NOW)
                router_c.finish(ticket, NOW)

            row("route_tokens + finish, bytes", from_bytes, cpp_ns)
    for size in (1_024, 32_768):
        body = body_of(size)
        router_d = fleet()
        count = calls if size < 4_096 else calls // 4

        def flat_body(i: int) -> None:
            _, ticket = router_d.route_body(body, NOW)
            router_d.finish(ticket, NOW)

        row(f"route_body + finish, {len(body)} bytes", flat_body, timed("body", body, REPLICAS, count=count), count)
    return rows + match_rows(timed, calls, repeats, loop)


def match_rows(timed: Callable[..., float | None], calls: int, repeats: int, loop: float) -> list[dict[str, Any]]:
    rows = []
    for tokens in (1_024, 10_000):
        blocks = [warmroute.hash_token_blocks(p) for p in prompts_of(tokens)]
        index = warmroute.PrefixIndex()
        for path in blocks:
            for replica in range(REPLICAS):
                index.store(replica, path)
        out = index.match(blocks[0])
        python_ns = least_ns(lambda i: index.match(blocks[i % PROMPTS], out), calls, repeats) - loop
        rows.append({"call": f"PrefixIndex.match, {tokens // 16} blocks", "python_ns": python_ns, "cpp_ns": timed("match", REPLICAS, tokens)})
    return rows


def peer_rows(calls: int, repeats: int) -> list[dict[str, Any]]:
    try:
        from dynamo.llm import RadixTree, SelectionService
    except ImportError as error:
        print(f"ai-dynamo-runtime is not measured: {error}", file=sys.stderr)
        return []
    rows: list[dict[str, Any]] = []
    for length in (64, 625):
        tree = RadixTree()
        paths = [warmroute.hash_token_blocks(p).tolist() for p in prompts_of(length * 16)]
        for i, path in enumerate(paths):
            stored = [{"block_hash": (i << 20) + k + 1, "tokens_hash": h} for k, h in enumerate(path)]
            event = json.dumps({"event_id": i, "data": {"stored": {"parent_hash": None, "blocks": stored}}, "dp_rank": 0}).encode()
            for worker in range(REPLICAS):
                tree.apply_event(worker, event)
        ns = least_ns(lambda i: tree.find_matches(paths[i % PROMPTS]).scores, calls // 10, repeats)
        rows.append({"call": f"dynamo RadixTree.find_matches + .scores, {length} blocks", "python_ns": ns, "cpp_ns": None})
    try:
        rows.append(asyncio.run(selection_row(SelectionService, calls)))
    except Exception as error:  # its catalogue's fields change between versions
        print(f"SelectionService is not measured: {type(error).__name__}: {error}", file=sys.stderr)
    return rows


async def selection_row(service_type: Any, calls: int) -> dict[str, Any]:
    service = service_type(indexer_threads=1)
    for worker in range(REPLICAS):
        await service.upsert_worker(
            {"worker_id": worker, "endpoint": f"http://127.0.0.1:{9000 + worker}", "model_name": "m", "block_size": 16,
             "kv_events_endpoint": f"tcp://127.0.0.1:{19000 + worker}",  # nobody publishes there
             "data_parallel_start_rank": 0, "data_parallel_size": 1, "total_kv_blocks": 65_536, "max_num_batched_tokens": 8_192})
    request = {"model_name": "m", "token_ids": list(range(1_000))}
    taken = []
    for _ in range(max(200, calls // 50)):
        begin = time.perf_counter_ns()  # its work is done on other threads: wall time
        await service.select(request)
        taken.append(time.perf_counter_ns() - begin)
    service.shutdown()
    return {"call": "dynamo SelectionService.select, 1000 tokens (median, wall)", "python_ns": sorted(taken)[len(taken) // 2], "cpp_ns": None}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--cpp", default="", help="folder of cpp_calls")
    arguments.add_argument("--quick", action="store_true")
    chosen = arguments.parse_args()
    cpp: Any = None
    if chosen.cpp:
        sys.path.insert(0, chosen.cpp)
        import cpp_calls as cpp  # type: ignore[import-not-found,no-redef]
    calls, repeats = (2_000, 3) if chosen.quick else (20_000, 15)
    rows = our_rows(cpp, calls, repeats) + peer_rows(calls, 3)
    load = os.getloadavg()[0]
    if chosen.json:
        print(json.dumps({"python": sys.version.split()[0], "numpy": numpy.__version__, "load": load, "rows": rows}, indent=1))
        return
    print(f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}, load {load:.1f}; ns of CPU per row, {REPLICAS} replicas")
    print(f"{'call':58} {'Python':>9} {'C++':>9} {'added':>9} {'ratio':>6}")
    for row in rows:
        python_ns, cpp_ns = row["python_ns"], row["cpp_ns"]
        compared = f"{cpp_ns:9.0f} {python_ns - cpp_ns:9.0f} {python_ns / cpp_ns:6.2f}" if cpp_ns else f"{'-':>9} {'-':>9} {'-':>6}"
        print(f"{row['call']:58} {python_ns:9.0f} {compared}")


if __name__ == "__main__":
    main()
