"""Dynamo's Python wheel on QUERY full, W=8, and on one selection: one figure per line, as JSON. Run by ../compare.py.

Look-ups are from a list of block hashes that is ready; the scores are read as Python reads them, by `.scores`. A selection is from
token ids, over workers that hold nothing: hashing, look-up, costs and the JSON-like request and answer.
"""

import asyncio
import json
import sys
import time

MASK = (1 << 64) - 1
WORKERS = 8


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def chain(family, length):
    return [mix(family << 32 | p) for p in range(length)]


def emit(workload, args, nanoseconds):
    ordered = sorted(nanoseconds)
    for metric, at in (("p50", 0.5), ("p99", 0.99)):
        value = ordered[int(at * (len(ordered) - 1))]
        print(json.dumps({"contender": "dynamo-python", "workload": workload, "args": args, "metric": metric, "value": value, "unit": "ns"}))


def timed(calls, call):
    taken = []
    for i in range(calls):
        begin = time.perf_counter_ns()
        call(i)
        taken.append(time.perf_counter_ns() - begin)
    return taken


def look_ups(RadixTree):
    for length, count, calls in ((64, 256, 20_000), (625, 64, 10_000), (4096, 16, 2_000)):
        tree = RadixTree()
        prompts = [chain(5_000_000 + i, length) for i in range(count)]
        for i, prompt in enumerate(prompts):
            # any names will do that are unique to the prefix; one event stores the whole chain
            blocks = [{"block_hash": mix(i << 32 | p) >> 1, "tokens_hash": h} for p, h in enumerate(prompt)]
            data = {"stored": {"parent_hash": None, "blocks": blocks}}
            for worker in range(WORKERS):
                tree.apply_event(worker, json.dumps({"event_id": i, "data": data, "dp_rank": 0}).encode())
        scores = tree.find_matches(prompts[0]).scores
        assert len(scores) == WORKERS and set(scores.values()) == {length}, scores
        emit("QUERY", f"kind=full W={WORKERS} L={length}", timed(calls, lambda i: tree.find_matches(prompts[i % count]).scores))


async def selections(SelectionService):
    service = SelectionService(indexer_threads=1)
    for worker in range(WORKERS):
        await service.upsert_worker(
            {"worker_id": worker, "endpoint": f"http://127.0.0.1:{9000 + worker}", "model_name": "m", "block_size": 16,
             "kv_events_endpoint": f"tcp://127.0.0.1:{19000 + worker}",  # nobody publishes there
             "data_parallel_start_rank": 0, "data_parallel_size": 1, "total_kv_blocks": 65_536, "max_num_batched_tokens": 8_192})
    for tokens, calls in ((1_000, 2_000), (10_000, 500), (65_000, 100)):
        request = {"model_name": "m", "token_ids": [i * 7919 % 151_936 for i in range(tokens)]}
        taken = []
        for _ in range(calls):
            begin = time.perf_counter_ns()
            await service.select(request)
            taken.append(time.perf_counter_ns() - begin)
        emit("SELECT", f"W={WORKERS} tokens={tokens}", taken)
    service.shutdown()


def main():
    try:
        from dynamo.llm import RadixTree, SelectionService
    except ImportError as error:
        sys.exit(f"ai-dynamo-runtime cannot be imported: {error}")
    look_ups(RadixTree)
    try:
        asyncio.run(selections(SelectionService))
    except Exception as error:  # its catalogue's fields change between versions
        print(f"selection skipped: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
