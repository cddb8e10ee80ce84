"""What engines say, in an orchestrator that has a transport of its own (Ray Serve, LiteLLM): it hands messages over, the router does the rest.

Each engine has two voices. KV events say what its cache holds: a KvSource per engine takes the messages, in the form in which vLLM and
SGLang publish them, from wherever they come. Its metrics page says how busy it is: a MetricsPoller asks for it on a thread, or an
EngineMetrics reads pages that the orchestrator has fetched anyway. The engines below are toys that live in this process.
"""

from __future__ import annotations

import http.server
import struct
import threading
import time
from collections.abc import Sequence
from typing import Union

import numpy

import warmroute

BLOCK = 16
Packed = Union[None, float, int, str, Sequence["Packed"]]


def pack(value: Packed) -> bytes:
    """MessagePack, as far as the toy engine needs it; real engines bring theirs."""
    if value is None:
        return b"\xc0"
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value)]) + value.encode()
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


class ToyEngine:
    """A model server of which only what it says of itself is there."""

    def __init__(self, running: int) -> None:
        page = f'vllm:num_requests_running{{engine="0",model_name="m"}} {running}\nvllm:num_requests_waiting{{engine="0",model_name="m"}} 0\n'

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.log: list[list[bytes]] = []  # what it has published, for replays: [topic, seq, payload]

    def stores(self, name: int, parent: int | None, tokens: list[int]) -> list[bytes]:
        """BlockStored: what a SUB socket's recv_multipart() gives, or what a callback inside the engine is told."""
        event: Packed = ["BlockStored", [name], parent, tokens, BLOCK, None, "GPU"]
        frames = [b"kv@toy", struct.pack(">Q", len(self.log)), pack([time.time(), [event], 0])]
        self.log.append(frames)
        return frames


def main() -> None:
    router = warmroute.Router(warmroute.Policy(block_size=BLOCK))
    engines = {"engine-0": ToyEngine(running=30), "engine-1": ToyEngine(running=2)}
    replicas = {name: router.add_replica(name) for name in engines}
    prompt = numpy.arange(3 * BLOCK + 1, dtype=numpy.uint32)
    blocks = [prompt[i * BLOCK : (i + 1) * BLOCK].tolist() for i in range(3)]

    def notice(what: warmroute.KvNotice) -> None:
        print(f"  notice: {what.kind.name} {what.from_}..{what.to}")

    engine = engines["engine-1"]
    source = warmroute.KvSource(router, replicas["engine-1"], replay=True, notice=notice)
    first, lost, third = (engine.stores(900 + i, None if i == 0 else 899 + i, tokens) for i, tokens in enumerate(blocks))
    source.live(first)
    print("one block stored:", router.peek(prompt).cached_tokens, "tokens are cached there")

    # A message got lost. What comes after it waits, and the source says what to ask the engine for (its replay socket, or a call).
    source.live(third)
    wanted = source.wants_replay()
    assert wanted == 1 and lost == engine.log[wanted]
    for _, seq, payload in engine.log[wanted:]:
        source.replayed_payload(int.from_bytes(seq, "big"), payload)
    source.replay_ended()
    print("the gap is closed:", router.peek(prompt).cached_tokens, "tokens")
    assert source.status().state is warmroute.KvSourceState.live and router.peek(prompt).cached_tokens == 48

    # Loads that this router has not caused: of other routers, of batch jobs.
    with warmroute.MetricsPoller(router, interval_ns=50_000_000) as poller:
        for name, server in engines.items():
            poller.add(server.url, replicas[name], name=name)
        while not all(status.scrapes for status in poller.statuses()):
            time.sleep(0.005)
        for status in poller.statuses():
            print(f"{status.name}: up={status.up}, {status.engine}, {status.signals} signals")
    decision = router.peek(numpy.arange(10_000, 12_000, dtype=numpy.uint32))  # a prompt that nobody holds
    print("a new prompt goes to", router.replica(decision.replica).name, "which has fewer requests")
    assert decision.replica == replicas["engine-1"]

    # The same by call, where the orchestrator has fetched the page already.
    reading = warmroute.EngineMetrics()
    print(reading.read('vllm:num_requests_running{engine="0",model_name="m"} 4\n').signals())
    reading.apply(router, replicas["engine-0"])

    # Over ZeroMQ without code of one's own, in builds that have it.
    if warmroute.has_zmq:
        with warmroute.KvSubscriber(router) as subscriber:
            subscriber.add(replicas["engine-0"], "tcp://127.0.0.1:5557", replay="tcp://127.0.0.1:5558")
            print("listening to engine-0:", subscriber.status(replicas["engine-0"]).source.state.name)


if __name__ == "__main__":
    main()
