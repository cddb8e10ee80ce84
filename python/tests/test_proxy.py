"""examples/python/02_asyncio_proxy.py against small upstreams: whole answers, streams, errors, clients that leave."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from typing import Any

import pytest
from conftest import ROOT

EXAMPLE = ROOT / "examples" / "python" / "02_asyncio_proxy.py"
aiohttp = pytest.importorskip("aiohttp")
from aiohttp import web  # noqa: E402

USAGE = {"prompt_tokens": 100, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 64}}


class Upstream:
    """Answers as an engine would; the prompt's first word says how."""

    def __init__(self) -> None:
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self.chat)
        self.served = 0

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.served += 1
        body = await request.json()
        how = body["messages"][0]["content"].split()[0]
        if how.isdigit():
            return web.json_response({"error": how}, status=int(how))
        if not body.get("stream"):
            return web.json_response({"choices": [], "usage": USAGE})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for word in ("one", "two", "three"):
            await response.write(b"data: " + json.dumps({"choices": [{"delta": {"content": word}}]}).encode() + b"\n\n")
            if how == "cut":
                assert request.transport is not None
                request.transport.abort()
                return response
            await asyncio.sleep(30 if how == "hang" else 0)
        await response.write(b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\ndata: [DONE]\n\n")
        return response


def load() -> Any:
    if not EXAMPLE.exists():
        pytest.skip("no examples here")
    spec = importlib.util.spec_from_file_location("proxy_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def start(app: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def chat(how: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": f"{how} " + "tell me of tides " * 40}], **more}


async def scenario() -> None:
    upstreams = [Upstream(), Upstream()]
    started = [await start(upstream.app) for upstream in upstreams]
    proxy = load().Proxy([url for _, url in started])
    runner, url = await start(proxy.app)
    async with aiohttp.ClientSession() as client:
        path = f"{url}/v1/chat/completions"
        async with client.post(path, json=chat("whole")) as answer:
            assert (answer.status, (await answer.json())["usage"]) == (200, USAGE)
        for _ in range(3):
            async with client.post(path, json=chat("stream", stream=True)) as answer:
                assert answer.status == 200 and b"[DONE]" in await answer.read()
        statistics = proxy.router.statistics()
        assert statistics.outcomes["finished"] == 4 and statistics.output_tokens == 12
        assert statistics.cached_reports == 4 and statistics.observed_ttft.count == 4
        for status in (400, 429, 500):
            async with client.post(path, json=chat(str(status))) as answer:
                assert answer.status == status
        async with client.post(path, data=b'{"model":') as answer:
            assert answer.status == 400 and (await answer.json())["error"]["code"] == "invalid_json"
        async with client.post(f"{url}/v1/nothing", json={}) as answer:
            assert answer.status == 400
        with pytest.raises(aiohttp.ClientError):
            async with client.post(path, json=chat("cut", stream=True)) as answer:
                await answer.read()
        answer = await client.post(path, json=chat("hang", stream=True))
        await answer.content.readany()
        answer.close()  # the client goes away in the middle
        await asyncio.sleep(0.2)
        assert proxy.router.statistics().outcomes["cancelled"] == 1
        for other, _ in started:
            await other.cleanup()
        async with client.post(path, json=chat("whole")) as answer:
            assert answer.status == 500
        async with client.get(f"{url}/metrics") as answer:
            assert "warmroute_decisions_total" in await answer.text()
    await runner.cleanup()
    statistics = proxy.router.statistics()
    assert statistics.tickets_in_flight == 0 and statistics.late_calls == 0
    ended = {name: count for name, count in statistics.outcomes.items() if count}
    assert ended["client_error"] == 1 and ended["backpressure"] == 1 and ended["replica_error"] >= 2
    assert ended["connect_error"] == 1


def test_the_proxy_serves_streams_and_survives_faults() -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))
