"""What usage costs: known sums, exact arithmetic, names, and every table of the case file."""

from __future__ import annotations

import json
import random
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from conftest import cases

from warmroute import Error, usage
from warmroute.usage import Cost, CostSource, PriceMeter, PriceTable, PriceTier, Usage, UsageReport

MICRO = 1_000_000  # picos
BASIC = {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 5e-7}
STEP = {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6, "input_cost_per_token_above_200k_tokens": 2e-6}
WRITES = {
    "input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6, "cache_creation_input_token_cost": 3.75e-6,
    "cache_creation_input_token_cost_above_1hr": 6e-6, "cache_read_input_token_cost": 3e-7,
}  # fmt: skip
PLAIN = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}


def used(input_tokens: int | None, cached: int | None, output: int | None, **more: int) -> Usage:
    return Usage(input_tokens=input_tokens, cached_input_tokens=cached, output_tokens=output, **more)


@pytest.mark.parametrize(
    ("prices", "counts", "report", "options", "micro_usd"),
    [
        (BASIC, used(1000, 600, 100), {}, {}, 1_900),
        ({**BASIC, "input_cost_per_token_priority": 4e-6, "output_cost_per_token_priority": 16e-6}, used(1000, 600, 100),
         {"service_tier": "ON_DEMAND_PRIORITY"}, {}, 3_500),
        (PLAIN, used(1000, None, 10), {"service_tier": "flex"}, {}, 1_020),
        ({**PLAIN, "input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 1e-6}, used(1000, None, 10), {},
         {"tier": PriceTier.batch}, 510),
        (STEP, used(200_000, None, 10), {}, {}, 200_040),
        (STEP, used(200_001, None, 10), {}, {}, 400_042),
        (WRITES, used(1100, 400, 10, cache_write_input_tokens=500, cache_write_5m_tokens=200, cache_write_1h_tokens=300), {}, {}, 3_420),
        (PLAIN, used(1000, 600, 0), {}, {}, 1_000),
        ({**PLAIN, "output_cost_per_reasoning_token": 3e-6}, used(1000, None, 200, reasoning_output_tokens=150), {}, {}, 1_550),
        ({**PLAIN, "off_peak_pricing": {"input_cost_per_token": 5e-7}}, used(100, None, 10), {}, {"off_peak": True}, 70),
        ({**PLAIN, "provider_specific_entry": {"fast": 6.0, "us": 1.1}}, used(100, None, 10),
         {"speed": "fast", "inference_geography": "us"}, {}, 792),
    ],
)  # fmt: skip
def test_known_sums(prices, counts, report, options, micro_usd) -> None:
    cost = PriceTable.from_json({"m": prices}).cost(UsageReport(counts, model="m", **report), **options)
    assert cost.picos == micro_usd * MICRO and cost.usd == Decimal(micro_usd) / MICRO and cost.source is CostSource.table
    assert abs(sum(line.cost_picos for line in cost.lines) - cost.picos) <= len(cost.lines)


def test_sums_are_those_of_exact_arithmetic() -> None:
    random.seed(3)
    for _ in range(500):
        rates = {name: random.randrange(50_000) for name in ("input", "output", "read", "write")}  # 1e-9 USD
        table = PriceTable.from_json(json.dumps({"m": {
            "input_cost_per_token": rates["input"] * 1e-9, "output_cost_per_token": f"{rates['output']}e-9",
            "cache_read_input_token_cost": rates["read"] * 1e-9, "cache_creation_input_token_cost": rates["write"] * 1e-9}}))  # fmt: skip
        total = random.randrange(1, 1_000_000)
        read = random.randrange(total + 1)
        write = random.randrange(total - read + 1)
        output = random.randrange(100_000)
        cost = table.cost(used(total, read, output, cache_write_input_tokens=write), "m")
        exact = (total - read - write) * rates["input"] + read * rates["read"] + write * rates["write"] + output * rates["output"]
        assert cost.usd is not None and Fraction(cost.usd) == Fraction(exact, 10**9)


def test_unknown_is_never_zero() -> None:
    table = PriceTable.from_json({"m": BASIC, "free": {"input_cost_per_token": 0, "output_cost_per_token": 0}})
    for counts, model in ((used(10, 0, 10), "nobody"), (used(10, 0, None), "m"), (used(None, 0, 3), "m")):
        cost = table.cost(counts, model)
        assert (cost.picos, cost.usd, cost.source, bool(cost)) == (None, None, CostSource.unknown, False) and "unknown" in repr(cost)
    free = table.cost(used(5, 0, 5), "free")
    assert free.picos == 0 and free and free.usd == 0
    reported = UsageReport(used(1000, 600, 100, reported_cost_picos=7), model="nobody")
    assert table.cost(reported).picos == 7 and table.cost(reported).source is CostSource.reported
    assert table.cost(reported, "m").picos == 1_900 * MICRO and table.cost(reported, "m", prefer_reported_cost=True).picos == 7
    assert table.cost(used(1, None, 0, unattributed_tokens=4), "m").partial


def test_a_bill_has_a_line_per_meter() -> None:
    cost = PriceTable.from_json({"m": BASIC}).cost(used(1000, 600, 100), "m")
    rows = [(line.meter, line.quantity, line.rate_femtos, line.cost_picos) for line in cost.lines]
    assert rows == [(PriceMeter.input, 400, 2 * 10**9, 800 * MICRO), (PriceMeter.cached_input, 600, 5 * 10**8, 300 * MICRO),
                    (PriceMeter.output, 100, 8 * 10**9, 800 * MICRO)]  # fmt: skip
    assert all(line.meter.name in repr(line) for line in cost.lines)
    assert cost.price_key == "m" and cost.threshold_tokens == 0 and not cost.tier_fell_back and "0.0019" in repr(cost)
    assert cost == PriceTable.from_json({"m": BASIC}).cost(used(1000, 600, 100), "m") != Cost(cost.picos, price_key="m")
    assert Cost(5).usd == Decimal("5e-12") and not Cost(None) and usage.usd(-(10**40)) == -Decimal(10) ** 28


def test_models_are_found_by_the_names_that_providers_use() -> None:
    table = PriceTable.from_json({"gpt-x": BASIC, "azure/gpt-x": BASIC, "anthropic.claude-y-v1:0": BASIC, "openrouter/a/b": BASIC})
    assert len(table) == 4
    for name, provider, key in (
        ("gpt-x-2026-02-03", "", "gpt-x"), ("gpt-x", "azure", "gpt-x"), ("a/b", "openrouter", "openrouter/a/b"),
        ("us.anthropic.claude-y-v1:0", "", "anthropic.claude-y-v1:0"), ("gpt-x-mini", "", None), ("mine", "", None),
    ):  # fmt: skip
        assert table.find(name, provider) == key
    table.set_alias("mine", "gpt-x")
    assert table.find("mine") == "gpt-x"
    with pytest.raises(Error) as caught:
        table.set_alias("", "m")
    assert caught.value.code == "invalid_argument"


def test_overrides_replace_members_or_nothing(tmp_path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"m": BASIC, "odd": {"input_cost_per_token": -1}}))
    table = PriceTable.load(path)
    assert table.version == PriceTable.load(str(path)).version == PriceTable.from_json(path.read_bytes()).version and table.skipped_rates == 1
    before = table.version
    table.override_with({"m": {"input_cost_per_token": 1e-6, "cache_read_input_token_cost": None}})
    assert table.version != before and table.cost(used(1000, 600, 100), "m").picos == 1_800 * MICRO
    with pytest.raises(Error, match="m.output_cost_per_token"):
        table.override_with('{"m":{"input_cost_per_token":9e-6,"output_cost_per_token":-1}}')
    assert table.cost(used(1000, 600, 100), "m").picos == 1_800 * MICRO
    for make, code in ((lambda: PriceTable.from_json("{"), "invalid_json"), (lambda: PriceTable.from_json(b"[]"), "not_an_object"),
                       (lambda: PriceTable.load("/no/such/file"), "io")):  # fmt: skip
        with pytest.raises(Error) as caught:
            make()
        assert caught.value.code == code
    with pytest.raises(TypeError):
        PriceTable.from_json(7)


def test_own_replicas_cost_what_their_hours_cost() -> None:
    table = PriceTable()
    speeds = {"input_tokens_per_second": 10_000, "output_tokens_per_second": 1_000}
    table.set_self_hosted("m", replica_hour_picos=3_600_000 * MICRO, **speeds)
    cost = table.cost(used(1000, 600, 100), "m")
    assert cost.picos == 140 * MICRO and cost.source is CostSource.self_hosted
    with pytest.raises(Error, match="utilization"):
        table.set_self_hosted("m", replica_hour_picos=1, utilization=0, **speeds)


def test_every_table_of_the_case_file_is_read_or_refused_and_prices_by_its_plain_rates() -> None:
    priced = 0
    for table in cases("price_tables.jsonl"):
        if not isinstance(table, dict):
            continue
        read = PriceTable.from_json(table)
        for model, rates in table.items():
            if read.find(model) != model or not isinstance(rates, dict):
                continue
            plain = plain_rates(rates)
            cost = read.cost(used(1000, 0, 10), model)
            if plain is None:
                continue
            priced += 1
            assert cost.usd is not None and Fraction(cost.usd) == 1000 * plain[0] + 10 * plain[1], (model, rates)
    assert priced >= 3


def plain_rates(rates: dict[str, Any]) -> tuple[Fraction, Fraction] | None:
    """Of a model that has no bands: as exact as the file's digits."""
    if "tiered_pricing" in rates:
        return None
    pair = []
    for name in ("input_cost_per_token", "output_cost_per_token"):
        value = rates.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
            return None
        pair.append(Fraction(round(value * 10**15), 10**15))
    return pair[0], pair[1]


def test_prices_may_change_under_readers() -> None:
    table = PriceTable.from_json({"m": BASIC})
    over = threading.Event()
    seen: set[int | None] = set()

    def read() -> None:
        while not over.is_set():
            seen.add(table.cost(used(1, None, 0), "m").picos)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(200):
        table.override_with({"m": {"input_cost_per_token": (1 + i % 2) * 1e-6}})
    over.set()
    for thread in threads:
        thread.join()
    assert seen <= {MICRO, 2 * MICRO}
