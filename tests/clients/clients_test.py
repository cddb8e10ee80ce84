"""The openai and anthropic packages through gateway and engines: what their users saw is what /usage says.

    python3 tests/clients/clients_test.py BUILD_FOLDER

Makes itself a virtual environment under build/clients; exit status 77 (skipped) where that cannot be had.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from programs import MODEL, Build, Program, eventually, get, metric, usage

SKIPPED = 77
PRICES = {
    MODEL: {
        "input_cost_per_token": 1e-6,
        "cache_read_input_token_cost": 1e-7,
        "output_cost_per_token": 4e-6,
    }
}


def with_packages() -> None:
    """Runs this file again in an environment that has the packages, unless they are here."""
    try:
        import anthropic  # noqa: F401
        import openai  # noqa: F401

        return
    except ImportError:
        pass
    venv = Path(__file__).resolve().parents[2] / "build" / "clients" / "venv"
    python = venv / "bin" / "python"
    if not (venv / ".ready").exists():
        made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
        if made.returncode == 0:
            made = subprocess.run(
                [python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "10", "openai", "anthropic"],
                capture_output=True,
                text=True,
            )
        if made.returncode != 0:
            reason = (made.stderr or made.stdout).strip().splitlines()[-1:]
            print(f"skipped: the openai and anthropic packages cannot be installed here: {' '.join(reason)}")
            sys.exit(SKIPPED)
        (venv / ".ready").touch()
    sys.exit(subprocess.run([python, *sys.argv]).returncode)


@dataclass
class Seen:
    """What the user of one key saw."""

    input: int = 0
    cached: int = 0
    output: int = 0
    requests: int = 0
    ids: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, input_tokens: int, cached: int, output: int, name: str) -> None:
        with self.lock:
            self.input += input_tokens
            self.cached += cached
            self.output += output
            self.requests += 1
            self.ids.append(name)


def prompt(i: int) -> str:
    """Every fourth prompt is the same: its prefix is in a cache."""
    return f"session {i % 4} " + "long context " * 40


class OpenAi:
    """One method per way to ask; each returns (input, cached, output, response id)."""

    def __init__(self, port: int, key: str) -> None:
        import openai

        self.client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0)

    def chat(self, i: int):
        answer = self.client.chat.completions.create(
            model=MODEL, max_tokens=3 + i % 9, messages=[{"role": "user", "content": prompt(i)}]
        )
        return of_openai(answer.usage, answer.id)

    def chat_stream(self, i: int):
        last = None
        for chunk in self.client.chat.completions.create(
            model=MODEL,
            max_tokens=3 + i % 9,
            stream=True,
            stream_options={"include_usage": True},
            messages=[{"role": "user", "content": prompt(i)}],
        ):
            last = chunk
        assert last is not None and last.usage is not None, "who asks for usage gets it"
        return of_openai(last.usage, last.id)

    def completions(self, i: int):
        answer = self.client.completions.create(model=MODEL, max_tokens=3 + i % 9, prompt=prompt(i))
        return of_openai(answer.usage, answer.id)

    def completions_stream(self, i: int):
        last = None
        for chunk in self.client.completions.create(
            model=MODEL,
            max_tokens=3 + i % 9,
            stream=True,
            stream_options={"include_usage": True},
            prompt=prompt(i),
        ):
            last = chunk
        assert last is not None
        return of_openai(last.usage, last.id)

    def responses(self, i: int):
        answer = self.client.responses.create(model=MODEL, max_output_tokens=3 + i % 9, input=prompt(i))
        return of_responses(answer)

    def responses_stream(self, i: int):
        last = None
        for event in self.client.responses.create(
            model=MODEL, max_output_tokens=3 + i % 9, input=prompt(i), stream=True
        ):
            last = event
        assert last is not None
        return of_responses(last.response)

    def all(self):
        return [
            self.chat,
            self.chat_stream,
            self.completions,
            self.completions_stream,
            self.responses,
            self.responses_stream,
        ]


class Anthropic:
    def __init__(self, port: int, key: str) -> None:
        import anthropic

        self.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{port}", api_key=key, max_retries=0)

    def messages(self, i: int):
        answer = self.client.messages.create(
            model=MODEL, max_tokens=3 + i % 9, messages=[{"role": "user", "content": prompt(i)}]
        )
        return of_anthropic(answer)

    def messages_stream(self, i: int):
        with self.client.messages.stream(
            model=MODEL, max_tokens=3 + i % 9, messages=[{"role": "user", "content": prompt(i)}]
        ) as stream:
            return of_anthropic(stream.get_final_message())

    def all(self):
        return [self.messages, self.messages_stream]


def of_openai(counts, name: str):
    return counts.prompt_tokens, counts.prompt_tokens_details.cached_tokens or 0, counts.completion_tokens, name


def of_responses(answer):
    counts = answer.usage
    return counts.input_tokens, counts.input_tokens_details.cached_tokens, counts.output_tokens, answer.id


def of_anthropic(answer):
    counts = answer.usage
    cached = counts.cache_read_input_tokens or 0
    return counts.input_tokens + cached, cached, counts.output_tokens, answer.id


def check(what: str, got, wanted) -> None:
    if got != wanted:
        print(f"FAILED: {what}: {got}, not {wanted}")
        sys.exit(1)


def abort_streams(port: int, key: str, count: int, limit: int) -> int:
    """Leaves in the middle of streams of both packages. Returns how many tokens were seen."""
    chat = OpenAi(port, key).client
    claude = Anthropic(port, key).client
    seen = 0
    for i in range(count):
        messages = [{"role": "user", "content": prompt(i)}]
        if i % 2 == 0:
            stream = chat.chat.completions.create(model=MODEL, max_tokens=limit, stream=True, messages=messages)
            for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    seen += 1
                if seen % 3 == 2:
                    break
            stream.close()
        else:
            with claude.messages.stream(model=MODEL, max_tokens=limit, messages=messages) as live:
                for event in live:
                    if event.type == "content_block_delta":
                        seen += 1
                        break
    return seen


def quiet_streams(port: int, key: str, count: int) -> int:
    """Chat streams whose user does not ask for usage. Returns how many tokens were seen."""
    client = OpenAi(port, key).client
    seen = 0
    for i in range(count):
        for chunk in client.chat.completions.create(
            model=MODEL, max_tokens=7, stream=True, messages=[{"role": "user", "content": prompt(i)}]
        ):
            check("usage in a stream that did not ask for it", getattr(chunk, "usage", None), None)
            check("choices in every chunk", len(chunk.choices), 1)
            seen += 1 if chunk.choices[0].delta.content else 0
    return seen


def compare(port: int, seen: dict[str, Seen]) -> None:
    rows = usage(port, "key")
    for name, one in seen.items():
        row = rows[name]
        check(f"{name}: requests", row["attempts"], one.requests)
        check(f"{name}: incomplete", row["incomplete"], 0)
        check(f"{name}: input", row["input_tokens"], one.input)
        check(f"{name}: cached", row["cached_input_tokens"], one.cached)
        check(f"{name}: output", row["output_tokens"], one.output)
        cost = (one.input - one.cached) * 1e-6 + one.cached * 1e-7 + one.output * 4e-6
        check(f"{name}: cost", round(row["cost_usd"], 12), round(cost, 12))
        print(
            f"  {name:<10} {one.requests:4} requests, {one.input} in of which {one.cached} cached, "
            f"{one.output} out, {row['cost_usd']:.6f} USD"
        )


def run(build: Build, folder: Path) -> None:
    control = folder / "control"
    keys = build.make_keys(control, ["openai", "anthropic", "quiet", "leaver", "drained"], "everybody")
    (folder / "prices.json").write_text(json.dumps(PRICES))
    engines = [build.start_engine(name, "--time-scale", "20") for name in ("one", "two")]
    programs = list(engines)
    common = [
        *("--port", "0", "--threads", "2", "--model", MODEL, "--tokenizer", "toy"),
        *("--control", control / "snapshot", "--trust", control / "verifying.pem"),
        *("--pepper", f"1={control / 'pepper.1'}", "--prices", folder / "prices.json"),
        *(word for e, n in zip(engines, ("one", "two")) for word in ("--replica", f"{n}=127.0.0.1:{e.port}")),
    ]

    def start(journal: str, *more: str) -> Program:
        gateway = Program(build.gateway, *common, "--journal", folder / journal, *more)
        programs.append(gateway)
        return gateway

    try:
        gateway = start("journal")
        port = gateway.port
        seen = {"openai": Seen(), "anthropic": Seen()}
        ways = [("openai", way) for way in OpenAi(port, keys["openai"]).all()]
        ways += [("anthropic", way) for way in Anthropic(port, keys["anthropic"]).all()]
        work = [(name, way, i) for i in range(12) for name, way in ways]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: seen[one[0]].add(*one[1](one[2])), work))
        compare(port, seen)
        check("cached tokens were seen", seen["openai"].cached > 0 and seen["anthropic"].cached > 0, True)

        tokens = quiet_streams(port, keys["quiet"], 6)
        row = usage(port, "key")["quiet"]
        check("quiet: output", row["output_tokens"], tokens)
        check("quiet: incomplete", row["incomplete"], 0)
        check("quiet: input is known", row["input_tokens"] > 0 and row["unknown_usage"] == 0, True)

        tokens = abort_streams(port, keys["leaver"], 10, 4000)
        check("all is closed", eventually(lambda: metric(port, "warmroute_gateway_journal_open") == 0), True)
        row = usage(port, "key")["leaver"]
        check("leaver: requests", row["attempts"], 10)
        check("leaver: incomplete", row["incomplete"], 10)
        check("leaver: output, at least what was seen", tokens <= row["output_tokens"] < 10 * 4000, True)
        check("leaver: unknown", row["unknown_usage"], 0)
        print(f"  leaver: 10 aborted, all there and partial; {tokens} tokens seen, {row['output_tokens']} counted")

        before = get(port, "/usage?by=key,team,model,replica")
        gateway.end()
        records = build.records(folder / "journal")
        check("events are unique", len({r["event_id"] for r in records}), len(records))
        there = {r["gen_ai.response.id"] for r in records if r.get("gen_ai.response.id")}
        for one in seen.values():
            check("every answer is in the journal", set(one.ids) <= there, True)
        check("after a restart", get(start("journal").port, "/usage?by=key,team,model,replica"), before)

        draining = start("drained", "--on-hangup", "drain")
        abort_streams(draining.port, keys["drained"], 6, 40)
        port = draining.port
        check("all is closed", eventually(lambda: metric(port, "warmroute_gateway_journal_open") == 0), True)
        row = usage(port, "key")["drained"]
        check("drained: requests", row["attempts"], 6)
        check("drained: incomplete", row["incomplete"], 0)
        check("drained: output", row["output_tokens"], 6 * 40)
        print("  drained: 6 aborted, all read to their end: 240 tokens out")
    finally:
        for program in programs:
            program.kill()


def main() -> None:
    with_packages()
    with tempfile.TemporaryDirectory(prefix="warmroute-clients-") as folder:
        run(Build(sys.argv[1]), Path(folder))
    print("passed")


if __name__ == "__main__":
    main()
