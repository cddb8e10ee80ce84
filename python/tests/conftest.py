"""What the tests share: where the case files are, and a router with a clock that tests move."""

from __future__ import annotations

import json
import os
import pathlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import warmroute

ROOT = pathlib.Path(os.environ.get("WARMROUTE_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def cases(name: str) -> list[dict[str, Any]]:
    path = ROOT / "tests" / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is not here (an sdist has no case files)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def pack(value: Any) -> bytes:
    """MessagePack of what engines' events are made of."""
    if value is None:
        return b"\xc0"
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value)]) + value.encode()
    if isinstance(value, dict):
        return bytes([0x80 + len(value)]) + b"".join(pack(key) + pack(item) for key, item in value.items())
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


class Clock:
    """Nanoseconds that pass when told to."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000

    def __call__(self) -> int:
        self.now_ns += 1_000
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def router(clock: Clock) -> Iterator[warmroute.Router]:
    router = warmroute.Router(clock=clock)
    for name in ("a", "b", "c"):
        router.add_replica(name)
    yield router
    assert router.statistics().tickets_in_flight == 0, "the test left tickets open"


@pytest.fixture
def prompt() -> Any:
    return numpy.arange(1_000, dtype=numpy.uint32)
