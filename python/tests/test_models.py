"""Names, pools, quotas and classes in front of a router."""

import json

import pytest

import warmroute
from warmroute import ModelRouter, Outcome, Policy, Request, Router, Verdict

MAP = {
    "models": [
        {"name": "chat", "targets": [{"pool": "70b", "model": "llama"}], "fallbacks": [{"pool": "api", "model": "gpt-x"}]},
        {"name": "cloud", "targets": [{"pool": "api"}]},
    ],
    "pools": [{"name": "api", "external": True, "tokens_per_minute": 300}],
    "classes": [{"class_id": 7, "may_leave": False}],
}


def fleet() -> tuple[Router, ModelRouter, int, int]:
    router = Router(Policy(route_when_all_down=False))
    gpu, api = router.add_replica("gpu", 0, pool="70b"), router.add_replica("api", 0, pool="api")
    return router, ModelRouter(router, json.dumps(MAP)), gpu, api


def ask(model: str, class_id: int = 0) -> Request:
    return Request(model=model, input_tokens=64, max_output_tokens=36, class_id=class_id)


def test_a_name_leads_to_its_pool_and_a_fallback_takes_over() -> None:
    router, models, gpu, api = fleet()
    first = models.route(ask("chat"), 1)
    assert (first.routed, first.pool, first.model, first.external, first.target) == (True, "70b", "llama", False, 0)
    assert first.decision.replica == gpu and models.first_token(first, 2)
    assert models.finish(first, 3, input_tokens=64, output_tokens=9) and not models.finish(first, 3)
    router.set_health(gpu, "down", "probe", 4)
    second = models.route(ask("chat"), 5)
    assert (second.pool, second.model, second.external, second.target, second.refused) == ("api", "gpt-x", True, 1, 1)
    assert second.decision.replica == api
    del models
    assert second.pool == "api"


def test_a_class_that_may_not_leave_is_told_so() -> None:
    router, models, gpu, _ = fleet()
    router.set_health(gpu, "down", "probe", 1)
    refused = models.route(ask("cloud", class_id=7), 2)
    assert refused.decision.verdict == Verdict.no_permitted_pool and refused.forbidden == 1 and not refused.routed
    assert models.route(ask("chat", class_id=7), 2).decision.verdict == Verdict.no_replica


def test_quotas_are_settled_and_a_server_that_asks_for_peace_is_left_alone() -> None:
    router, models, _, _ = fleet()
    calls = [models.route(ask("cloud"), 1) for _ in range(4)]
    assert [c.routed for c in calls] == [True, True, True, False]
    assert calls[3].decision.verdict == Verdict.saturated and calls[3].decision.retry_after_ns > 0
    assert models.finish(calls[0], 2, input_tokens=10, output_tokens=0)
    assert models.fail(calls[1], Outcome.connect_error, 2)
    again = models.route(ask("cloud"), 3)
    assert again.routed and models.fail(again, "backpressure", 4, retry_after_ns=1_000)
    assert models.readings() == {"api": {"routed": 4, "over_quota": 1, "in_flight": 1, "blocked_until_ns": 1_004}}
    assert router.requests_in_flight("api") == 1


def test_a_faulty_map_changes_nothing_and_names_every_fault() -> None:
    _, models, _, _ = fleet()
    with pytest.raises(warmroute.Error, match=r"models\[0\].name is missing.*has no targets") as caught:
        models.set_map('{"models": [{}]}')
    assert caught.value.code == "invalid_argument"
    assert models.route(ask("chat"), 1).routed
    with pytest.raises(TypeError):
        ModelRouter(object())


def test_an_exact_pool_has_no_stand_in() -> None:
    router = Router()
    router.add_replica("any", 0)
    assert router.peek(Request(model="70b")).routed
    assert router.peek(Request(model="70b", exact_pool=True)).verdict == Verdict.no_pool
    assert router.peek(Request(model="70b"), exact_pool=True).verdict == Verdict.no_pool
