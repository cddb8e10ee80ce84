"""What an answer used: every case whole, byte by byte and cut anywhere; and what is asked for, hidden and estimated around it."""

from __future__ import annotations

import base64
import json
import pickle
import threading
from typing import Any

import pytest
from conftest import cases

from warmroute import Error, usage
from warmroute.usage import Meter, TokenEstimate, TokenEstimator, Usage, UsageChunkFilter, UsageReport, UsageSource

OPTIONAL = (
    "audio_input_tokens", "image_input_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens", "tool_use_input_tokens",
    "processed_input_tokens", "processed_output_tokens", "unattributed_tokens", "web_search_requests", "web_fetch_requests",
)  # fmt: skip


def all_cases() -> list[tuple[dict[str, Any], bytes, dict[str, Any]]]:
    out = []
    for case in cases("usage_cases.jsonl"):
        body = base64.b64decode(case["body"]) if "body_encoding" in case else case["body"].encode()
        out.append((case, body, {"input_includes_cache": True} if "input_includes_cache" in case.get("hints", {}) else {}))
    assert len(out) > 100
    return out


def as_expected(report: UsageReport) -> dict[str, Any]:
    """A report as the case file spells it; what is unknown and optional there is left out."""
    u = report.usage
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens")
    out: dict[str, Any] = {name: getattr(u, name) for name in names}
    out |= {"total_tokens": u.total_tokens, "complete": report.complete}
    out |= {name: getattr(u, name) for name in OPTIONAL if getattr(u, name) is not None}
    lifetimes = {life: getattr(u, f"cache_write_{life}_tokens") for life in ("5m", "30m", "1h", "12h")}
    if known := {life: count for life, count in lifetimes.items() if count is not None}:
        out["cache_write_ttl"] = known
    if report.anomalies:
        out["anomalies"] = list(report.anomalies)
    if report.service_tier:
        out["service_tier"] = report.service_tier
    if report.error:
        out["error"] = True
    if report.source is UsageSource.timings:
        out["source"] = "timings"
    if u.reported_cost_picos is not None:
        out["reported_cost_usd"] = f"{usage.usd(u.reported_cost_picos).normalize():f}"
    if report.other_models:
        out["other_model_lines"] = [{"model": m, **{n: getattr(o, n) for n in names[:4]}} for m, o in report.other_models]
    return out


def test_answers_are_read_whole() -> None:
    for case, body, options in all_cases():
        report = usage.read_usage(body, **options)
        assert as_expected(report) == case["expect"], case["id"]


def test_answers_are_read_byte_by_byte() -> None:
    for case, body, options in all_cases():
        meter = Meter(**options)
        firsts = [i + 1 for i in range(len(body)) if meter.feed(body[i : i + 1])]
        meter.finish()
        assert as_expected(meter.report()) == case["expect"], case["id"]
        assert firsts == [] if meter.first_token_end is None else firsts in ([], [meter.first_token_end]), case["id"]
        assert meter.is_stream == (case["framing"] != "json") and meter.bytes == len(body)


def test_where_answers_are_cut_does_not_matter() -> None:
    for case, body, options in all_cases():
        meter = Meter(**options)
        meter.feed(body)
        meter.finish()
        whole, first = meter.report(), meter.first_token_end
        for cut in range(1, len(body)):
            meter.reset()
            before = meter.feed(body[:cut])
            cut_short, revision = meter.report(), meter.revision
            meter.feed(memoryview(body)[cut:])
            meter.finish()
            assert meter.report() == whole and meter.complete == whole.complete, (case["id"], cut)
            assert meter.revision != revision or cut_short == whole, (case["id"], cut)
            assert meter.first_token_end == first and before == (first is not None and first <= cut), (case["id"], cut)


def test_answers_that_are_cut_off_are_only_complete_with_their_last_counts() -> None:
    for case, body, options in all_cases():
        last = usage.read_usage(body, **options).usage
        meter = Meter(**options)
        for cut in range(0, len(body), 7):
            meter.reset()
            meter.feed(body[:cut])
            meter.finish()
            if meter.complete:
                assert (meter.usage.input_tokens, meter.usage.output_tokens) == (last.input_tokens, last.output_tokens), case["id"]


def test_a_meter_says_what_it_saw() -> None:
    meter = Meter("openai", requested_tier="flex")
    assert meter.report() == UsageReport(service_tier="flex") and meter.first_token_end is None and not meter.is_stream
    body = b'{"id":"c1","model":"m","choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":-1}}'
    meter.feed(bytearray(body))
    meter.finish()
    report = meter.report()
    assert (report.model, report.response_id, report.finish_reason, report.service_tier) == ("m", "c1", "stop", "flex")
    assert meter.usage == Usage() and meter.anomalies == report.anomalies == ("invalid_count",)  # all of a usage that cannot be
    assert "invalid_count" in usage.USAGE_ANOMALIES and len(usage.USAGE_ANOMALIES) == 9
    assert "m, partial: Usage()" in repr(report)
    for api in (usage.AnswerApi.messages, "messages", 4):
        assert usage.read_usage(b'{"usage":{"input_tokens":2,"output_tokens":3,"cache_read_input_tokens":5}}', api).usage.input_tokens == 7
    with pytest.raises(ValueError, match="AnswerApi"):
        Meter("soap")


def test_usage_is_a_value() -> None:
    some = Usage(input_tokens=10, cached_input_tokens=4, output_tokens=3)
    assert (some.total_tokens, some.uncached_input_tokens, some.reasoning_output_tokens) == (13, 6, None)
    assert Usage().total_tokens is None and some != Usage() and some == eval(repr(some)) and hash(some) == hash(eval(repr(some)))
    assert pickle.loads(pickle.dumps(some)) == some and some.to_dict() == {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3}
    assert some.replace(output_tokens=None, web_search_requests=2) == Usage(input_tokens=10, cached_input_tokens=4, web_search_requests=2)
    for bad in ({"tokens": 1}, {"input_tokens": 1.5}, {"input_tokens": "1"}):
        with pytest.raises(TypeError):
            Usage(**bad)
        with pytest.raises(TypeError):
            some.replace(**bad)
    with pytest.raises(AttributeError):
        some.input_tokens = 1
    report = UsageReport(some, complete=True, source="provider", anomalies=["bad_crc"], model="m")
    assert report.usage == some and report.complete and report.source is UsageSource.provider and report.anomalies == ("bad_crc",)
    assert report == UsageReport(some, complete=True, source=1, anomalies=("bad_crc",), model="m") and report != UsageReport(some)
    with pytest.raises(ValueError, match="USAGE_ANOMALIES"):
        UsageReport(anomalies=["haunted"])


def test_threads_may_share_a_meter_and_long_pieces_let_others_run() -> None:
    meter = Meter()
    piece = b'data: {"choices":[{"delta":{"content":"' + b"x" * 300_000 + b'"}}]}\n\n'

    def feed() -> None:
        for _ in range(30):
            meter.feed(piece)

    threads = [threading.Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert meter.usage == Usage()
    assert meter.bytes == 4 * 30 * len(piece) and meter.report().output_events > 0


EVENTS = [b'data: {"choices":[{"delta":{"content":"hi"}}],"usage":null}\n\n', b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n',
          b"data: [DONE]\n\n"]  # fmt: skip


def test_usage_is_asked_for_and_hidden_again() -> None:
    ask = usage.ask_for_usage(b'{"model":"m", "stream":true}')
    assert ask.stream and not ask.asked and ask.changed
    assert json.loads(ask.body) == {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    for body in (b'{"stream":true,"stream_options":{"include_usage":true}}', b'{"stream":false}', b"{}"):
        kept = usage.ask_for_usage(body)
        assert kept.body == body and not kept.changed and kept.asked == (b"options" in body)
    with pytest.raises(Error) as caught:
        usage.ask_for_usage(b"[1]")
    assert caught.value.code == "not_an_object"
    assert usage.requested_tier('{"service_tier":"flex"}') == "flex" and usage.requested_tier(b"{}") == ""

    stream = b"".join(EVENTS)
    hidden = UsageChunkFilter()
    for cut in range(len(stream) + 1):
        hidden.reset()
        assert hidden.feed(stream[:cut]) + hidden.feed(stream[cut:]) + hidden.finish() == EVENTS[0] + EVENTS[2], cut
        assert hidden.removed


def test_estimates_are_learned_and_fill_in_what_was_cut_off() -> None:
    estimator = TokenEstimator()
    assert estimator.bytes_per_token == 3 and TokenEstimator(4.5).bytes_per_token == 4.5
    for _ in range(200):
        estimator.learn(8_000, 2_000)
    assert abs(estimator.bytes_per_token - 4) < 0.1
    estimate = estimator.estimate(4_000, requested_output_tokens=100)
    assert 1_000 <= estimate.input_tokens <= 1_200 and estimate.output_tokens == 100 and estimate.total == estimate.input_tokens + 100
    assert estimator.estimate(4_000, known_input_tokens=7, max_output_tokens=50).usage == Usage(input_tokens=7, output_tokens=50)

    meter = Meter()
    meter.feed(EVENTS[0] * 3)
    meter.finish()
    cut_off = meter.report()
    filled = usage.estimate_missing(cut_off, TokenEstimate(900, 500))
    assert filled.usage == Usage(input_tokens=900, output_tokens=3) and filled.source is UsageSource.estimate and not filled.complete
    assert cut_off.usage == Usage()
    whole = UsageReport(Usage(input_tokens=1, output_tokens=2), complete=True, source="provider")
    assert usage.estimate_missing(whole, TokenEstimate(900, 500)) == whole


def test_an_upstream_whose_client_left_is_drained_or_cut() -> None:
    drain = usage.HangupDrain(now_ns=0, max_drain_ns=100, max_drain_bytes=50)
    assert drain.go_on(20, now_ns=10) and not drain.go_on(0, complete=True, now_ns=11) and not drain.go_on(0, now_ns=100)
    assert drain.deadline_ns == 100 and not drain.go_on(40, now_ns=20)
    assert not usage.HangupDrain("cut", now_ns=5).go_on(0, now_ns=5)
