"""kill -9 of the gateway under load, again and again, with and without a torn tail of its journal.

    python3 tests/clients/kills_test.py BUILD_FOLDER [KILLS]      (20 kills; WARMROUTE_KILLS says otherwise)

After each recovery and at the end:
  - what a client has whole is in the journal once, complete, with the counts that the client saw;
  - what a client has the head of is in the journal, as an end or as incomplete; every begin has one of both;
  - what was handed over is that, without an event more or less, however often it was told;
  - /usage of the last process is the sum of it all.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from programs import MODEL, Build, Program, eventually, metric, usage

CLIENTS = 6


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Load(threading.Thread):
    """A client that never rests. `whole`: operation to what it saw; `begun`: operations whose head it has."""

    def __init__(self, port: int, number: int) -> None:
        super().__init__(daemon=True)
        self.port, self.number = port, number
        self.whole: dict[str, tuple[str, int, int]] = {}
        self.begun: set[str] = set()
        self.lost = 0
        self.over = False

    def run(self) -> None:
        count = 0
        while not self.over:
            count += 1
            try:
                self.ask(count)
            except (OSError, http.client.HTTPException, ValueError):
                self.lost += 1
                time.sleep(0.005)

    def ask(self, count: int) -> None:
        stream = count % 3 != 0
        body: dict = {
            "model": MODEL,
            "max_tokens": 2 + count % 40,
            "stream": stream,
            "messages": [{"role": "user", "content": f"{self.number} " + "word " * (10 + count % 50)}],
        }
        if stream:
            body["stream_options"] = {"include_usage": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            operation = answer.getheader("x-warmroute-operation") or ""
            if answer.status != 200 or not operation:
                raise ValueError(f"status {answer.status}")
            self.begun.add(operation)
            last = None
            if stream:
                done = False
                while not done:
                    line = answer.readline()
                    if not line:
                        raise ValueError("cut")
                    if line.startswith(b"data: [DONE]"):
                        done = True
                    elif line.startswith(b"data: "):
                        last = json.loads(line[6:])
            else:
                last = json.loads(answer.read())
            assert last is not None
            counts = last["usage"]
            self.whole[operation] = (last["id"], counts["prompt_tokens"], counts["completion_tokens"])
        finally:
            connection.close()


class Journal:
    """All that the journal ever said, read on from where the last look ended."""

    def __init__(self, build: Build, folder: Path) -> None:
        self.build, self.folder = build, folder
        self.cursor = "0:0"
        self.begins: set[str] = set()
        self.ends: dict[str, dict] = {}
        self.twice: list[str] = []

    def look(self) -> tuple[list[dict], str]:
        """Returns what came since the last read, begins included, and the place behind it."""
        done = subprocess.run(
            [self.build.journal, self.folder, "--begins", "--from", self.cursor],
            check=True,
            capture_output=True,
            text=True,
        )
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return records, done.stderr.strip().splitlines()[-1]

    def read(self) -> None:
        records, self.cursor = self.look()
        for record in records:
            name = record["event_id"]
            if record["kind"] == "begin":
                self.begins.add(name)
            elif name in self.ends:
                self.twice.append(name)
            else:
                self.ends[name] = record


def tear(journal: Journal, chance: random.Random) -> str:
    """What a write that was not whole leaves behind. Returns which kind."""
    segments = [path for path in journal.folder.iterdir() if path.is_file() and not path.name.startswith("cursor")]
    kind = chance.choice(["none", "garbage", "part", "cut"])
    segment = max(segments, key=lambda path: path.stat().st_mtime_ns, default=None)
    if segment is None or segment.stat().st_size <= 300 or kind == "none":
        return "none"  # only the newest one can be torn
    if kind == "garbage":
        with segment.open("ab") as file:
            file.write(chance.randbytes(chance.randint(1, 400)))
    elif kind == "part":
        # The beginning of what was a record once, as a write leaves it that the disk took in part.
        # Where that happens to be all of a record, not its last byte: a whole one would be told twice.
        piece = segment.read_bytes()[-250:][: chance.randint(1, 200)]
        size = 8 + int.from_bytes(piece[:4], "little")
        with segment.open("ab") as file:
            file.write(piece[: size - 1])
    else:
        records, _ = journal.look()
        if not records or records[-1]["kind"] != "begin":
            return "none"  # what a client may have had an answer to is not for us to cut
        os.truncate(segment, segment.stat().st_size - chance.randint(1, 20))
    return kind


def check(what: str, good: bool, detail: object = "") -> None:
    if not good:
        print(f"FAILED: {what} {str(detail)[:1500]}")
        sys.exit(1)


def check_journal(journal: Journal, loads: list[Load], torn_begins: int) -> None:
    by_operation: dict[str, list[dict]] = {}
    for record in journal.ends.values():
        by_operation.setdefault(record["operation_id"], []).append(record)
    for load in loads:
        for operation, (answer, tokens_in, tokens_out) in list(load.whole.items()):
            records = by_operation.get(operation, [])
            check("whole for its client, so once in the journal", len(records) == 1, (operation, records))
            one = records[0]
            check(
                "as its client saw it",
                (one["kind"], one["complete"], one["gen_ai.response.id"]) == ("end", True, answer)
                and (one["gen_ai.usage.input_tokens"], one["gen_ai.usage.output_tokens"]) == (tokens_in, tokens_out),
                (one, answer, tokens_in, tokens_out),
            )
        missing = [operation for operation in list(load.begun) if operation not in by_operation]
        check("begun, so in the journal", len(missing) <= torn_begins, missing)
    check("no event ended twice", not journal.twice, journal.twice)
    check("every begin has its end", journal.begins <= journal.ends.keys(), journal.begins - journal.ends.keys())


def run(build: Build, folder: Path, kills: int) -> None:
    chance = random.Random(kills)
    port = free_port()
    handed = folder / "usage.jsonl"
    engines = [build.start_engine(name, "--time-scale", "20") for name in ("one", "two")]
    words = [
        *(build.gateway, "--port", str(port), "--threads", "2", "--model", MODEL, "--tokenizer", "toy"),
        *("--journal", folder / "journal", "--usage-file", handed),
        *(word for e, n in zip(engines, ("one", "two")) for word in ("--replica", f"{n}=127.0.0.1:{e.port}")),
    ]
    journal = Journal(build, folder / "journal")
    loads = [Load(port, i) for i in range(CLIENTS)]
    torn: dict[str, int] = {}
    gateway = Program(*words)
    try:
        for load in loads:
            load.start()
        for _ in range(kills):
            time.sleep(chance.uniform(0.02, 0.25))
            gateway.kill()
            kind = tear(journal, chance)
            torn[kind] = torn.get(kind, 0) + 1
            gateway = Program(*words)
            journal.read()
        for load in loads:
            load.over = True
        for load in loads:
            load.join()
        check("all is closed", eventually(lambda: metric(port, "warmroute_gateway_journal_open") == 0))
        total = usage_total(port)
        gateway.end()
        journal.read()
        check_journal(journal, loads, torn.get("cut", 0))
        check("/usage is the journal's sum", total == sum_of(journal.ends.values()), (total, sum_of(journal.ends.values())))
        lines, broken, unique = read_handed(handed)
        missing, extra = journal.ends.keys() - unique.keys(), unique.keys() - journal.ends.keys()
        check("handed over: every event and no other", not missing and not extra, (missing, extra, [journal.ends[key] for key in missing]))
        check("handed over: as the journal has it", sum_of(unique.values()) == total)
        incomplete = sum(1 for record in journal.ends.values() if record["kind"] == "incomplete")
        print(
            f"{kills} kills ({', '.join(f'{n} {kind}' for kind, n in sorted(torn.items()))}): "
            f"{len(journal.ends)} events, {sum(len(one.whole) for one in loads)} whole for their clients, "
            f"{incomplete} found open, {sum(one.lost for one in loads)} requests failed; "
            f"{lines} lines handed over, {lines - len(unique)} of them again, {broken} torn"
        )
    finally:
        gateway.kill()
        for engine in engines:
            engine.kill()


def sum_of(records) -> tuple[int, int, int, int]:
    all_of = list(records)
    return (
        len(all_of),
        sum(1 for record in all_of if not record["complete"]),
        sum(record.get("gen_ai.usage.input_tokens") or 0 for record in all_of),
        sum(record.get("gen_ai.usage.output_tokens") or 0 for record in all_of),
    )


def usage_total(port: int) -> tuple[int, int, int, int]:
    rows = usage(port, "replica").values()
    names = ("attempts", "incomplete", "input_tokens", "output_tokens")
    first, second, third, fourth = (sum(row[name] for row in rows) for name in names)
    return first, second, third, fourth


def read_handed(path: Path) -> tuple[int, int, dict[str, dict]]:
    """Returns lines, lines that are no JSON, and the first of each event: what a consumer keeps."""
    lines = broken = 0
    unique: dict[str, dict] = {}
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            broken += 1
            continue
        lines += 1
        unique.setdefault(record["event_id"], record)
    return lines, broken, unique


def main() -> None:
    kills = int(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("WARMROUTE_KILLS", "20"))
    with tempfile.TemporaryDirectory(prefix="warmroute-kills-") as folder:
        run(Build(sys.argv[1]), Path(folder), kills)
    print("passed")


if __name__ == "__main__":
    main()
