"""The operations of generate_usage.hpp through the Python interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from control_python import ControlRunner

import warmroute
from warmroute import usage

COUNTS = (
    "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens",
    "cache_write_5m_tokens", "cache_write_30m_tokens", "cache_write_1h_tokens", "cache_write_12h_tokens",
    "text_input_tokens", "audio_input_tokens", "image_input_tokens", "video_input_tokens",
    "cached_text_input_tokens", "cached_audio_input_tokens", "cached_image_input_tokens", "cached_video_input_tokens",
    "text_output_tokens", "audio_output_tokens", "image_output_tokens",
    "tool_use_input_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens", "processed_input_tokens",
    "processed_output_tokens", "unattributed_tokens", "context_input_tokens", "web_search_requests", "web_fetch_requests",
    "reported_cost_picos",
)  # fmt: skip
USE = ("input_tokens", "cached_input_tokens", "output_tokens", "cost_picos")


def known(value: int | None) -> int:
    return -1 if value is None else value


def text(field: str) -> str:
    return "" if field == "-" else field


def word(value: str) -> str:
    return value or "-"


def joined(values: Iterable[object], by: str = ",") -> str:
    return by.join(map(str, values))


def code_of(call: Callable[[], object]) -> int:
    try:
        call()
    except warmroute.Error as error:
        return error.code_number
    return 0


class UsageRunner:
    def __init__(self) -> None:
        self.report = usage.UsageReport()
        self.prices = usage.PriceTable()
        self.limits = usage.Limits(lease_ns=5_000_000_000)
        self.scopes: list[int] = []
        self.tickets: list[int] = []
        self.control = ControlRunner(self.limits)

    def run(self, op: str, rest: str) -> str | None:
        """returns: None: the operation is none of these."""
        if op == "prices":
            return self.read_prices(rest)
        if op == "override":
            return f"override {code_of(lambda: self.prices.override_with(rest))}"
        method = getattr(self, f"op_{op}", None)
        if method is None:
            return self.control.run(op, rest, self.report)
        return method(*rest.split(" "))

    def op_meter(self, api: str, profile: str, cut: str, body: str) -> str:
        belief = {"0": None, "1": True, "2": False}
        meter = usage.Meter(
            int(api), input_includes_cache=belief[profile[0]], output_includes_reasoning=belief[profile[1]],
            ignore_total=profile[2] == "1", trust_requested_tier=profile[3] == "1", requested_tier="flex")  # fmt: skip
        answer = bytes.fromhex(text(body))
        for at in range(0, len(answer), int(cut) or len(answer) or 1):
            meter.feed(answer[at : at + (int(cut) or len(answer))])
        meter.finish()
        r = self.report = meter.report()
        bits = sum(1 << usage.USAGE_ANOMALIES.index(name) for name in r.anomalies)
        others = joined(joined([model, *(known(getattr(o, name)) for name in COUNTS[:4])], ":") for model, o in r.other_models)
        return (
            f"meter {int(r.complete)} {int(r.error)} {int(r.source)} {bits} {r.output_events} {known(meter.first_token_end)} "
            f"{int(meter.is_stream)} {joined(known(getattr(r.usage, name)) for name in COUNTS)} {word(r.finish_reason)} "
            f"{word(r.service_tier)} {word(r.model)} {word(r.response_id)} {word(others)}"
        )

    def read_prices(self, json: str) -> str:
        try:
            self.prices = usage.PriceTable.from_json(json)
        except warmroute.Error as error:
            return f"prices error {error.code_number}"
        return f"prices {len(self.prices)} {self.prices.skipped_rates} {self.prices.version}"

    def op_alias(self, alias: str, model: str) -> str:
        return f"alias {code_of(lambda: self.prices.set_alias(text(alias), text(model)))}"

    def op_cost(self, model: str, provider: str, tier: str, flags: str) -> str:
        c = self.prices.cost(
            self.report, text(model), provider=text(provider), tier=None if tier == "-1" else int(tier),
            prefer_reported_cost=flags[0] == "1", off_peak=flags[1] == "1")  # fmt: skip
        lines = joined(joined((int(row.meter), row.quantity, row.rate_femtos, row.cost_picos), ":") for row in c.lines)
        return (
            f"cost {known(c.picos)} {int(c.source)} {word(c.price_key)} {c.threshold_tokens} {int(c.tier_fell_back)} {int(c.partial)} "
            f"{word(lines)}"
        )

    def op_scope(self, dimension: str, value: str) -> str:
        try:
            scope = self.limits.scope(text(dimension), text(value))
        except warmroute.Error as error:
            return f"scope {error.code_number}"
        if scope not in self.scopes:
            self.scopes.append(scope)
        return "scope 0"

    def specs(self, field: str) -> list[usage.LimitSpec]:
        out = []
        for one in text(field).split(","):
            name, kind, unit, amount, period_ns, burst, every, count, weight, shadow, hard_stop = one.split(":")
            window = usage.CalendarWindow(usage.CalendarUnit(int(every)), int(count))
            out.append(usage.LimitSpec(
                name, usage.LimitKind(int(kind)), usage.LimitUnit(int(unit)), int(amount), int(period_ns), int(burst), window,
                int(weight), shadow == "1", hard_stop == "1"))  # fmt: skip
        return out

    def op_limits(self, scope: str, specs: str) -> str:
        return f"limits {code_of(lambda: self.limits.set_limits(self.scopes[int(scope)], self.specs(specs)))}"

    def op_default(self, dimension: str, specs: str) -> str:
        return f"default {code_of(lambda: self.limits.set_default_limits(text(dimension), self.specs(specs)))}"

    def use(self, field: str) -> dict[str, int | None]:
        return {name: None if count == "-1" else int(count) for name, count in zip(USE, field.split(","))}

    def place(self, scope: int | None) -> int:
        return -1 if scope is None or scope not in self.scopes else self.scopes.index(scope)

    def op_reserve(self, scopes: str, use: str, steady: str, wall: str) -> str:
        asked = [self.scopes[int(number)] for number in scopes.split(",")]
        d = self.limits.decide(asked, **self.use(use), now_ns=int(steady), wall_ns=int(wall))
        self.tickets.append(d.ticket)
        left = []
        for unit in usage.LimitUnit:
            one = d.left.get(unit.name)
            left.append("-1:0:0" if one is None else f"{one.amount}:{one.remaining}:{one.reset_ns}")
        headers = joined(f"{name}:{value}" for name, value in d.headers.items())
        return (
            f"reserve {int(d.outcome)} {self.place(d.scope)} {d.limit} {known(d.retry_after_ns)} {known(d.reset_ns)} {int(d.shadow_denied)} "
            f"{self.place(d.shadow_scope)} {d.shadow_limit} {joined(left)} {word(headers)}"
        )

    def op_progress(self, which: str, use: str, steady: str, wall: str) -> str:
        ticket = self.tickets[int(which)]
        return f"progress {int(self.limits.progress(ticket, **self.use(use), now_ns=int(steady), wall_ns=int(wall)))}"

    def op_settle(self, which: str, use: str, steady: str, wall: str) -> str:
        ticket = self.tickets[int(which)]
        return f"settle {code_of(lambda: self.limits.settle(ticket, **self.use(use), now_ns=int(steady), wall_ns=int(wall)))}"

    def op_release(self, which: str, steady: str, wall: str) -> str:
        ticket = self.tickets[int(which)]
        return f"release {code_of(lambda: self.limits.release(ticket, now_ns=int(steady), wall_ns=int(wall)))}"

    def op_extend(self, which: str, steady: str) -> str:
        return f"extend {code_of(lambda: self.limits.extend(self.tickets[int(which)], now_ns=int(steady)))}"

    def op_expire(self, steady: str, wall: str) -> str:
        return f"expire {self.limits.advance(now_ns=int(steady), wall_ns=int(wall))}"

    def op_used(self, scope: str, name: str, steady: str, wall: str) -> str:
        try:
            amount = self.limits.used(self.scopes[int(scope)], text(name), now_ns=int(steady), wall_ns=int(wall))
        except warmroute.Error as error:
            return f"used error {error.code_number}"
        return f"used {amount}"
