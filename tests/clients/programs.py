"""The programs under test as child processes, and how to ask them: no packages needed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path

MODEL = "toy-70b"


class Program:
    """A child process whose first line says where it listens."""

    def __init__(self, *words: str | Path, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if not found:
            raise RuntimeError(f"{words[0]} did not start: {line!r}")
        self.port = int(found[1])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


class Build:
    """Where the programs are."""

    def __init__(self, folder: str) -> None:
        self.examples = Path(folder) / "examples"
        self.gateway = self.examples / "gateway" / "warmroute-gateway"
        self.engine = self.examples / "engine" / "warmroute-engine"
        self.keys = self.examples / "keys" / "warmroute-keys"
        self.journal = self.examples / "journal" / "usage_journal"

    def start_engine(self, name: str, *more: str) -> Program:
        return Program(self.engine, "--port", "0", "--name", name, "--model", MODEL, *more)

    def make_keys(self, folder: Path, names: list[str], team: str) -> dict[str, str]:
        """A control folder with a key for each name. Returns the keys."""
        subprocess.run([self.keys, "init", folder], check=True, capture_output=True)
        keys = {}
        for name in names:
            done = subprocess.run(
                [self.keys, "issue", "--team", team, "--key-id", name, folder / "snapshot"],
                check=True,
                capture_output=True,
                text=True,
            )
            keys[name] = done.stdout.strip()
        return keys

    def records(self, folder: Path, begins: bool = False) -> list[dict]:
        """What a journal has."""
        done = subprocess.run(
            [self.journal, folder, *(["--begins"] if begins else [])], check=True, capture_output=True, text=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


def usage(port: int, by: str) -> dict[str, dict]:
    """/usage by one dimension: its rows by their names."""
    return {row[by]: row for row in json.loads(get(port, f"/usage?by={by}"))["rows"]}


def metric(port: int, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", get(port, "/metrics"), re.MULTILINE)
    return float(found[1]) if found else -1


def eventually(condition, within: float = 10.0) -> bool:
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
