"""An OpenAI-compatible proxy: routes each body, streams the answer through, feeds usage back.

    python 02_asyncio_proxy.py 8080 http://gpu-0:8000 http://gpu-1:8000

Needs aiohttp. Retries, health checks and authentication are left to you; examples/gateway does all of that in C++.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

import warmroute

HOP_BY_HOP = {"host", "connection", "content-length", "transfer-encoding", "content-encoding", "accept-encoding"}


class UsageReader:
    """Finds the last `usage` in an answer: of a stream's last chunks, or of a whole JSON body."""

    def __init__(self) -> None:
        self.tail = b""
        self.found: dict[str, Any] = {}

    def feed(self, chunk: bytes) -> None:
        *lines, self.tail = (self.tail + chunk).split(b"\n")
        for line in lines:
            self.read(line)

    def read(self, line: bytes) -> None:
        if b'"usage"' not in line:
            return
        try:
            self.found = json.loads(line.removeprefix(b"data:")).get("usage") or self.found
        except ValueError:
            pass  # not JSON: not ours to judge

    def tell(self, ticket: warmroute.Ticket) -> None:
        self.read(self.tail)
        details: dict[str, Any] = self.found.get("prompt_tokens_details") or {}
        ticket.usage(
            input_tokens=self.found.get("prompt_tokens"),
            cached_tokens=details.get("cached_tokens"),  # absent is unknown, not zero
            output_tokens=self.found.get("completion_tokens"),
        )


class Proxy:
    def __init__(self, upstreams: list[str]) -> None:
        self.router = warmroute.Router(log=lambda level, line: print(level.name, line, file=sys.stderr))
        self.urls = {self.router.add_replica(url): url for url in upstreams}
        self.app = web.Application(client_max_size=32 << 20)
        self.app.router.add_post("/v1/{path:.*}", self.forward)
        self.app.router.add_get("/metrics", self.metrics)
        self.app.cleanup_ctx.append(self.client)

    async def client(self, app: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(auto_decompress=False) as self.session:
            yield

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(text=self.router.prometheus())

    async def forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            ticket = self.router.route(body, api=warmroute.api_for_path(request.path))
        except warmroute.Error as error:
            return web.json_response({"error": {"message": str(error), "code": error.code}}, status=400)
        async with ticket:  # an exception below fails the ticket with the fitting outcome, a normal end finishes it
            if not ticket:
                return web.json_response({"error": {"message": ticket.decision.verdict.name}}, status=503)
            headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
            async with self.session.post(self.urls[ticket.replica] + request.path_qs, data=body, headers=headers) as upstream:
                kept = {k: v for k, v in upstream.headers.items() if k.lower() not in HOP_BY_HOP}
                response = web.StreamResponse(status=upstream.status, headers=kept)
                await response.prepare(request)
                usage = UsageReader()
                async for chunk in upstream.content.iter_any():
                    ticket.first_token()
                    usage.feed(chunk)
                    try:
                        await response.write(chunk)
                    except ConnectionResetError:  # our client left: says nothing about the replica
                        ticket.fail("cancelled")
                        raise
                if upstream.status >= 400:
                    busy = upstream.status in (429, 503)
                    ticket.fail("backpressure" if busy else "client_error" if upstream.status < 500 else "replica_error")
                usage.tell(ticket)
                await response.write_eof()
                return response


if __name__ == "__main__":
    web.run_app(Proxy(sys.argv[2:]).app, port=int(sys.argv[1]), handler_cancellation=True)  # a client that leaves ends its request
