"""What a proxy does for one request beside routing it: whose key it is, whether it may, what its answer used and cost, and the books.

The upstream below is a toy that streams what a server of OpenAI's chat completions streams; all else is what a proxy in the manner of
LiteLLM would do. Prices come from a file in LiteLLM's format; here, from a dict of it.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Iterator

import warmroute
from warmroute import usage

PEPPER = b"a secret of this deployment"
ALICE, BOB = "sk-id1-4f9c2a7e51d84b03", "sk-id2-90b1c6d2e8f74a55"


class UpstreamGone(ConnectionError):
    """The toy's connection broke in mid-stream."""


def upstream(body: bytes, *, breaks: bool = False) -> Iterator[bytes]:
    """The stream of an answer, in pieces that end anywhere."""
    asked = json.loads(body)
    head = '{"id":"c1","model":"m-2026-01-01","choices":'
    events = [head + '[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}'] * 20
    events.append(head + '[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    if asked.get("stream_options", {}).get("include_usage"):
        counts = '{"prompt_tokens":1200,"completion_tokens":20,"total_tokens":1220,"prompt_tokens_details":{"cached_tokens":1024}}'
        events.append(head + '[],"usage":' + counts + "}")
    stream = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()
    for at in range(0, len(stream) // 2 if breaks else len(stream), 97):
        yield stream[at : at + 97]
    if breaks:
        raise UpstreamGone("reset by peer")


class Proxy:
    """The parts, made once, and what happens to each request."""

    def __init__(self, directory: str) -> None:
        self.keys = usage.KeySet()
        self.keys.add_pepper(1, PEPPER)
        records = [
            usage.KeyRecord(f"id{n}", name, "blue", digests=(usage.key_digest(key, pepper=PEPPER, pepper_version=1),))
            for n, name, key in ((1, "alice", ALICE), (2, "bob", BOB))
        ]
        self.keys.replace(1, records)
        self.limits = usage.Limits()
        self.limits.set_default_limits("key", [usage.LimitSpec("rpm", amount=3)])
        month = usage.LimitSpec("monthly", "budget", "cost_nanos", 5_000_000_000, hard_stop=True)  # 5 USD
        self.limits.set_limits(self.limits.scope("team", "blue"), [month])
        self.prices = usage.PriceTable.from_json(
            {"m": {"input_cost_per_token": 2e-6, "cache_read_input_token_cost": 2e-7, "output_cost_per_token": 8e-6}}
        )
        self.estimator = usage.TokenEstimator()
        self.journal = usage.Journal(directory)
        self.ledger = usage.Ledger(prices=self.prices)

    def serve(self, key: str, body: bytes, *, breaks: bool = False) -> tuple[int, dict[str, str], bytes]:
        """returns: status, headers, and what the client sees."""
        grant = self.keys.check(key)
        if not grant:
            return grant.status, {}, b"the key was not accepted"  # not why: that is for our logs (grant.verdict)
        parsed = warmroute.BodyParser().parse(body)
        estimate = self.estimator.estimate(parsed.prompt_bytes, requested_output_tokens=parsed.max_output_tokens)
        expected = self.prices.cost(estimate.usage, parsed.model or "")
        scopes = [self.limits.scope("key", grant.key_id), self.limits.scope("team", grant.team_id)]
        with self.limits.reserve(
            scopes, input_tokens=estimate.input_tokens, output_tokens=estimate.output_tokens, cost_picos=expected.picos
        ) as reservation:
            if not reservation:
                return reservation.status(), reservation.headers, f"denied by {reservation.denied_by}".encode()
            event = usage.UsageEvent(
                operation_id=str(uuid.uuid4()),
                start_time_ns=time.time_ns(),
                key_id=grant.key_id,
                team_id=grant.team_id,
                provider="openai",
                operation="chat",
                request_model=parsed.model or "",
                replica_id="gpu-0",  # of a Ticket's replica, where warmroute routes
                usage=estimate.usage,
                source="estimate",
            )
            number = self.journal.begin(event)  # before the request leaves
            answer = self.stream(body, reservation, breaks)
            report = usage.estimate_missing(answer.meter.report(), estimate)
            self.estimator.learn(parsed.prompt_bytes, report.usage.input_tokens or 0)
            cost = self.prices.cost(report)
            reservation.used(report.usage, cost.picos)  # settled at the end of the block
            ended = event.ended(report, time.time_ns(), cost=cost, price_table_version=self.prices.version)
            self.journal.end(number, ended)
            self.ledger.add(ended)
            return answer.status, reservation.headers, answer.sent

    def stream(self, body: bytes, reservation: usage.Reservation, breaks: bool) -> Answer:
        """The answer on its way to the client: metered, the usage that we asked for taken out."""
        ask = usage.ask_for_usage(body)
        answer = Answer()
        hidden = usage.UsageChunkFilter() if ask.changed else None
        try:
            for piece in upstream(ask.body, breaks=breaks):
                answer.meter.feed(piece)  # True once: the first token is here (Ticket.first_token)
                answer.sent += hidden.feed(piece) if hidden else piece
                if reservation.progress(answer.meter.usage) is usage.LimitProgress.stop:
                    break  # the budget is gone
        except ConnectionError:
            answer.status = 502
        answer.meter.finish()
        if hidden and answer.status == 200:
            answer.sent += hidden.finish()
        return answer


class Answer:
    def __init__(self) -> None:
        self.status = 200
        self.meter = usage.Meter("openai")
        self.sent = b""


def main() -> None:
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "every word counts. " * 250}]}).encode()
    with tempfile.TemporaryDirectory() as directory:
        proxy = Proxy(directory)
        status, headers, sent = proxy.serve(ALICE, body)
        print("alice:", status, {name: headers[name] for name in ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests")})
        assert status == 200 and b"usage" not in sent and b"[DONE]" in sent
        print("broken in mid-stream:", proxy.serve(ALICE, body, breaks=True)[0])
        print("a wrong secret:", proxy.serve(ALICE[:-1] + "0", body)[0])
        proxy.serve(ALICE, body)
        status, headers, why = proxy.serve(ALICE, body)
        print("one too many:", status, "retry-after", headers["retry-after"], why.decode())
        print("bob:", proxy.serve(BOB, body)[0])

        print(f"{'key':6} {'attempts':>8} {'partial':>7} {'input':>6} {'cached':>6} {'output':>6} {'USD':>9} {'saved':>9}")
        for row in proxy.ledger.snapshot(["key"]):
            s = row.sums
            print(
                f"{row.key_id:6} {s.attempts:8} {s.incomplete:7} {s.input_tokens:6} {s.cached_input_tokens:6} {s.output_tokens:6} "
                f"{s.cost_usd:9.6f} {s.saved_by_cache_usd:9.6f}"
            )
        assert proxy.ledger.total().attempts == 4

        # Somebody else's consumer: at least once, from where it has acknowledged.
        reader = usage.JournalReader(directory, proxy.journal.acknowledged)
        lines = [json.loads(record.json_line()) for record in reader]
        proxy.journal.acknowledge(reader.cursor)
        print(len(lines), "events exported, e.g.", {k: v for k, v in lines[0].items() if k.startswith("gen_ai.usage")})
        again = usage.Ledger()
        again.read(usage.JournalReader(directory))
        assert again.total().cost_picos == proxy.ledger.total().cost_picos
        proxy.journal.close()


if __name__ == "__main__":
    main()
