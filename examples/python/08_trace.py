"""A trace through a router that records, what another policy would have decided, and the same trace on a simulated fleet.

usage: 08_trace.py [trace]    of any public form; without one, conversations of its own
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import numpy

import warmroute
from warmroute import trace


def own_trace(path: pathlib.Path) -> None:
    """Thirty conversations of four turns, each prompt beginning with the one before."""
    with trace.TraceWriter(path) as writer:
        for turn in range(4):
            for who in range(30):
                blocks = numpy.arange(who * 100, who * 100 + 3 + 2 * turn, dtype=numpy.uint64)
                arrival_us = (turn * 30 + who) * 60_000
                tokens = len(blocks) * 512 + 200
                writer.write(trace.TraceRecord(arrival_us=arrival_us, input_tokens=tokens, output_tokens=40, blocks=blocks))


def record(records: list[trace.TraceRecord], log: pathlib.Path) -> None:
    """Fills a decision log: prompts take 50 ms, a token of an answer 10 ms."""
    router = warmroute.Router(warmroute.Policy(block_size=512), record=log)
    for i in range(4):
        router.add_replica(f"gpu-{i}", 0)
    for r in records:
        now = r.arrival_us * 1000
        request = warmroute.Request(blocks=r.blocks, input_tokens=r.input_tokens)
        ticket = router.route(request, now)
        ticket.first_token(now + 50_000_000)
        ticket.usage(output_tokens=r.output_tokens)
        ticket.finish(now + 50_000_000 + r.output_tokens * 10_000_000)
    router.flush_recording()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, log = pathlib.Path(folder) / "trace.jsonl.gz", pathlib.Path(folder) / "calls.decisions"
        if len(sys.argv) > 1:
            path = pathlib.Path(sys.argv[1])
        else:
            own_trace(path)
        records = list(trace.TraceReader(path))
        print(f"{path.name}: {len(records)} records, {trace.detect_trace_format(path).name}")

        record(records, log)
        entry = next(r for r in trace.DecisionLog(log) if r.call is trace.DecisionCall.route)
        print(entry.to_json())
        print("as it was:", "identical" if trace.replay(log).identical else "it differs")
        other = trace.replay(log, change={"algorithm": "round_robin"})
        print(f"round_robin: {other.other_choices} of {other.decisions} other choices")

        workload = trace.Workload.open_loop(records).at_load(0.9, "70b-8xh100", 4)
        for rule in ("warmroute", "rr", "chwbl:c=1.25"):
            figures = trace.simulate(workload, profile="70b-8xh100", replicas=4, rule=rule, view="own-approx")
            print(f"{rule:14} TTFT mean {figures.ttft.mean_us / 1000:8.1f} ms, {100 * figures.hit_ratio:4.1f} % cached")


if __name__ == "__main__":
    main()
