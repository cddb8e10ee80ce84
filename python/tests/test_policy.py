"""Policy: keywords, JSON, every knob; enums; errors."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from conftest import cases

import warmroute
from warmroute import Algorithm, Error, Policy

CHANGES = {
    "algorithm": Algorithm.bounded_hash,
    "beta": 0.5,
    "gamma": 0.25,
    "delta": 2.0,
    "hot": 0.0,
    "tail": 0.25,
    "reuse_ns": 6_000_000,
    "session_bonus_ns": 5_000_000,
    "host_transfer_per_token_ns": 7,
    "disk_transfer_per_token_ns": 9,
    "shared_transfer_per_token_ns": 11,
    "ring_key": warmroute.RingKey.session_or_prefix,
    "ring_key_tokens": 512,
    "ring_points": 64,
    "ring_seed": 2**64 - 1,
    "routers": 3,
    "bound_factor": 1.25,
    "block_size": 64,
    "hash_seed": 2**63 + 5,
    "isolation": warmroute.Isolation.pool,
    "capacity_tokens": 12_345,
    "residency_ttl_ns": 60_000_000_000,
    "lease_ns": 2_000_000,
    "session_ttl_ns": 1_000_000_000,
    "signals_max_age_ns": 3_000_000_000,
    "stale_signals": warmroute.StaleSignals.exclude,
    "route_when_all_down": False,
    "seed": 4,
    "version": 9,
    "learn_rates": False,
    "saturation_wait_ns": 4_000_000,
    "saturation_kv": 0.875,
    "shed_priority": -2,
    "disaggregate": warmroute.Disaggregate.decided,
    "unified_pairs": True,
    "pair_min_tokens": 77,
    "kv_transfer_per_token_ns": 78,
    "kv_transfer_latency_ns": 79,
    "transfer_timeout_ns": 80_000_000,
    "decode_keeps_cache": False,
    "interference": 0.375,
    "ttft_limit_ns": 81,
    "itl_limit_ns": 82,
}


def test_every_knob_goes_in_and_comes_out() -> None:
    assert set(CHANGES) == set(Policy().to_dict())
    policy = Policy(**CHANGES)
    assert policy.to_dict() == CHANGES
    for name, value in CHANGES.items():
        assert getattr(policy, name) == value
        assert getattr(Policy(), name) != value
        single = Policy().replace(**{name: value})
        assert single == Policy(**{name: value}) and single != Policy()
        with pytest.raises(AttributeError):
            setattr(policy, name, value)


def test_json_gives_the_same_policy_back() -> None:
    policy = Policy(**CHANGES)
    assert Policy.from_json(policy.to_json()) == policy
    assert json.loads(policy.to_json())["lease_ms"] == 2
    assert Policy.from_json('{"beta": 3}', base=policy) == policy.replace(beta=3.0)
    assert pickle.loads(pickle.dumps(policy)) == policy == copy.deepcopy(policy)
    assert hash(policy) == hash(policy.replace()) and len({policy, Policy(), Policy()}) == 2
    assert eval(repr(Policy(algorithm="random", beta=0.5))) == Policy(algorithm="random", beta=0.5)


def test_every_policy_of_the_case_file_survives_a_round_trip() -> None:
    good = 0
    for case in cases("policies.jsonl"):
        try:
            policy = Policy.from_json(json.dumps(case))
        except Error as error:
            assert error.code == "invalid_argument", case
            continue
        good += 1
        assert Policy.from_json(policy.to_json()) == policy == Policy(**policy.to_dict())
    assert good >= 5


@pytest.mark.parametrize(
    "keywords, kind",
    [
        ({"beta": -1}, Error),
        ({"block_size": 0}, Error),
        ({"lease_ns": 0}, Error),
        ({"algorithm": "no_such"}, ValueError),
        ({"algorithm": 77}, ValueError),
        ({"algorithm": 1.5}, TypeError),
        ({"beta": "much"}, TypeError),
        ({"block_size": 1.5}, TypeError),
        ({"no_such": 1}, TypeError),
    ],
)
def test_bad_knobs_are_refused(keywords, kind) -> None:
    with pytest.raises(kind):
        Policy(**keywords)
    with pytest.raises(kind):
        Policy().replace(**keywords)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(Error) as caught:
        Policy(beta=-1, block_size=513)
    assert "beta" in str(caught.value) and "block_size" in str(caught.value)
    with pytest.raises(Error) as caught:
        Policy.from_json('{"beta": 1, }')
    assert (caught.value.code, caught.value.code_number) == ("invalid_json", warmroute.Code.invalid_json)
    with pytest.raises(Error) as caught:
        Policy.from_json('{"no_such": 1}')
    assert caught.value.code == "invalid_argument"


def test_errors_are_value_errors_and_survive_pickling() -> None:
    with pytest.raises(ValueError) as caught:
        warmroute.BodyParser().parse(b'{"model":')
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.code, error.code_number, error.offset, str(error)) == (
        caught.value.code, caught.value.code_number, caught.value.offset, str(caught.value))
    assert error.code == "invalid_json" and f"at byte {error.offset}" in str(error)


def test_enums_have_the_numbers_of_the_library() -> None:
    assert [verdict.name for verdict in warmroute.Verdict][:3] == ["routed", "no_replica", "no_pool"]
    assert warmroute.Verdict.routed == 0 and warmroute.Code.empty_prompt == 30
    statistics = warmroute.Router().statistics()
    assert list(statistics.verdicts) == [verdict.name for verdict in warmroute.Verdict]
    assert list(statistics.outcomes) == [outcome.name for outcome in warmroute.Outcome]
    page = warmroute.Router().prometheus()  # names come from the library's own tables there
    for kind, names in (("verdict", warmroute.Verdict), ("outcome", warmroute.Outcome)):
        for member in names:
            assert f'{kind}="{member.name}"' in page
    for member in list(warmroute.Reason)[1:]:
        assert f'reason="{member.name}"' in page
    for algorithm in warmroute.Algorithm:
        assert json.loads(Policy(algorithm=algorithm).to_json())["algorithm"] == algorithm.name
