"""The operations of generate.cpp and generate_usage.hpp through the Python interface: reads them from stdin, prints a line for each."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy
from usage_python import UsageRunner

import warmroute

NOBODY = 2**32 - 1
NO_OFFSET = 2**64 - 1


def text(field: str) -> str:
    return "" if field == "-" else field


def hexadecimal(field: str) -> numpy.ndarray:
    return numpy.array([int(number, 16) for number in text(field).split(",") if number], dtype=numpy.uint64)


def tokens(field: str) -> numpy.ndarray:
    """ "seed:count,...": token k of a run is seed * 2654435761 + k * 40503, modulo 2^32."""
    parts = [numpy.zeros(0, dtype=numpy.uint32)]
    for run in text(field).split(","):
        if run:
            seed, count = map(int, run.split(":"))
            parts.append(numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(40_503) + numpy.uint32(seed * 2_654_435_761 % 2**32))
    return numpy.concatenate(parts)


def code_of(call: Callable[[], object]) -> int:
    try:
        call()
    except warmroute.Error as error:
        return error.code_number
    return 0


class Runner:
    def __init__(self) -> None:
        self.router = warmroute.Router()
        self.replicas: list[int] = []
        self.members: list[warmroute.RingMember] = []
        self.ring = warmroute.HashRing()
        self.tickets: list[int] = []
        self.sources: dict[int, warmroute.KvSource] = {}
        self.metrics = warmroute.EngineMetrics()
        self.usage = UsageRunner()

    def run(self, line: str) -> str:
        op, _, rest = line.partition(" ")
        if op == "body":
            api, now, body = rest.split(" ", 2)
            return self.body(int(api), int(now), body)
        if op == "page":
            which, now, page = rest.split(" ", 2)
            return self.page(int(which), int(now), page.replace("|", "\n"))
        answer = self.usage.run(op, rest)
        return getattr(self, f"op_{op}")(*rest.split(" ")) if answer is None else answer

    def op_policy(self, json: str) -> str:
        code = code_of(lambda: self.router.set_policy(warmroute.Policy.from_json(json)))
        return f"policy {code}" if code else "policy ok"

    def op_add(self, name: str, pool: str, weight: str, capacity: str, now: str) -> str:
        try:
            replica = self.router.add_replica(text(name), int(now), pool=text(pool), weight=float(weight), capacity_tokens=int(capacity))
        except warmroute.Error as error:
            return f"add error {error.code_number}"
        self.members.append(warmroute.RingMember(text(name), len(self.replicas), float(weight)))
        self.replicas.append(replica)
        return f"add {warmroute.replica_slot(replica)} {warmroute.replica_generation(replica)}"

    def op_remove(self, which: str, now: str) -> str:
        return f"remove {code_of(lambda: self.router.remove_replica(self.replicas[int(which)], int(now)))}"

    def op_clear(self, which: str, now: str) -> str:
        return f"clear {code_of(lambda: self.router.clear_cache(self.replicas[int(which)], int(now)))}"

    def op_health(self, which: str, state: str, now: str) -> str:
        return f"health {code_of(lambda: self.router.set_health(self.replicas[int(which)], int(state), 'test', int(now)))}"

    def op_signal(self, which: str, kind: str, value: str, now: str) -> str:
        return f"signal {code_of(lambda: self.router.signal(self.replicas[int(which)], int(kind), float(value), int(now)))}"

    def op_stored(self, which: str, tier: str, parent: str, ids: str, runs: str, now: str) -> str:
        before = None if parent == "-" else int(parent, 16)

        def store() -> None:
            self.router.blocks_stored(
                self.replicas[int(which)], hexadecimal(ids), before, int(now), token_ids=tokens(runs), tier=int(tier))

        return f"stored {code_of(store)}"

    def op_removed(self, which: str, tier: str, ids: str, now: str) -> str:
        try:
            count = self.router.blocks_removed(self.replicas[int(which)], hexadecimal(ids), int(now), tier=int(tier))
        except warmroute.Error as error:
            return f"removed error {error.code_number}"
        return f"removed {count}"

    def op_engine(self, which: str, seq: str, payload: str, now: str) -> str:
        number = int(which)
        if number not in self.sources:
            self.sources[number] = warmroute.KvSource(self.router, self.replicas[number])
        source = self.sources[number]
        source.live_payload(int(seq), bytes.fromhex(payload), int(now))
        s = source.status()
        return (
            f"engine {int(s.state)} {s.next} {s.blocks_stored} {s.blocks_removed} {s.orphan_blocks} {s.gaps} {s.restarts} {s.bad_messages}"
        )

    def page(self, which: int, now: int, page: str) -> str:
        try:
            self.metrics.read(page)
        except warmroute.Error as error:
            return f"page error {error.code_number}"
        done = self.metrics.apply(self.router, self.replicas[which], now)
        return f"page {done.signals} {done.refused} {done.unmatched_ranks}"

    def decision(self, d: warmroute.Decision) -> str:
        def named(replica: int) -> tuple[int, int]:
            return warmroute.replica_slot(replica), warmroute.replica_generation(replica)

        slot, generation = named(d.replica) if d.routed else (NOBODY, 0)
        fallbacks = ",".join("{}.{}".format(*named(replica)) for replica in d.fallbacks) or "-"
        device, host, disk, shared = d.cached_tokens_by_tier
        return (
            f"route {int(d.verdict)} {int(d.reason)} {slot} {generation} {fallbacks} {d.ticket} {d.input_tokens} {device} {host} {disk} {shared} "
            f"{d.best_cached_tokens} {d.expected_wait_ns} {d.expected_prefill_ns}"
        )

    def asked(self, request: warmroute.Request | warmroute.ParsedBody, now: int) -> str:
        ticket = self.router.route(request, now)
        self.tickets.append(ticket.detach())  # released by number, as the other surfaces do
        return self.decision(ticket.decision)

    def request(self, model: str, session: str, tenant: str, max_output: str, runs: str) -> warmroute.Request:
        return warmroute.Request(
            tokens(runs), model=text(model), session=text(session), tenant=text(tenant), max_output_tokens=int(max_output))

    def op_route(self, model: str, session: str, tenant: str, max_output: str, runs: str, now: str) -> str:
        return self.asked(self.request(model, session, tenant, max_output, runs), int(now))

    def op_peek(self, model: str, session: str, tenant: str, max_output: str, runs: str, now: str) -> str:
        return self.decision(self.router.peek(self.request(model, session, tenant, max_output, runs), int(now)))

    def op_routeblocks(self, model: str, kind: str, input_tokens: str, hashes: str, now: str) -> str:
        blocks = hexadecimal(hashes)
        return self.asked(
            warmroute.Request(blocks=blocks, model=text(model), block_kind=int(kind), input_tokens=int(input_tokens)), int(now))

    def body(self, api: int, now: int, body: str) -> str:
        try:
            parsed = self.router.parse_body(body.encode("utf-8", "surrogateescape"), api)
        except warmroute.Error as error:
            self.tickets.append(0)
            return f"body error {error.code_number} {NO_OFFSET if error.offset is None else error.offset}"
        return self.asked(parsed, now)

    def op_first(self, which: str, now: str) -> str:
        return f"first {int(self.router.first_token(self.tickets[int(which)], int(now)))}"

    def op_finish(self, which: str, cached: str, output: str, now: str) -> str:
        done = self.router.finish(self.tickets[int(which)], int(now), cached_tokens=int(cached), output_tokens=int(output))
        return f"finish {int(done)}"

    def op_fail(self, which: str, outcome: str, now: str) -> str:
        return f"fail {int(self.router.fail(self.tickets[int(which)], int(outcome), int(now)))}"

    def op_advance(self, now: str) -> str:
        self.router.advance(int(now))
        return "advance"

    def op_home(self, key: str) -> str:
        if len(self.ring) != len(self.members):
            self.ring = warmroute.HashRing(self.members)
        return f"home {self.ring.home(int(key, 16))}"

    def op_stats(self) -> str:
        s = self.router.statistics()
        counts = (",".join(map(str, group.values())) for group in (s.verdicts, s.reasons, s.outcomes))
        return f"stats {' '.join(counts)} {s.late_calls} {s.tickets_in_flight}"


def main() -> None:
    runner = Runner()
    lines = open(sys.argv[1], encoding="utf-8", errors="surrogateescape") if len(sys.argv) > 1 else sys.stdin
    if lines is sys.stdin:
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
    for line in lines:
        line = line.rstrip("\n")
        print(runner.op_stats() if line == "stats" else runner.run(line))


if __name__ == "__main__":
    main()
