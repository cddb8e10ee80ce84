"""Control: signatures, snapshots, the applier, the file source, the hand-over."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
import weakref
from typing import Any

import pytest

import warmroute
from warmroute import Error, Policy, Router
from warmroute.control import (
    FileSource,
    ForcedRollback,
    Handover,
    OnExpired,
    PriceSlot,
    SigningKey,
    Snapshot,
    SnapshotApplier,
    SnapshotError,
    SnapshotTeam,
    VerifyingKey,
    parse_snapshot,
    replace_file,
    sign_snapshot,
    verify_snapshot,
)
from warmroute.usage import Journal, KeyDigestKind, KeySet, KeyVerdict, Limits, LimitSpec, PriceTable, Usage, UsageEvent, key_digest

S = 1_000_000_000
WALL = 1_800_000_000 * S
KEY = "sk-k1-secretsecretsecret"
DIGEST = key_digest(KEY, "sha256_secret").digest.hex()
SIGNER = SigningKey.from_seed(b"t" * 32, "t")
STRANGER = SigningKey.from_seed(b"s" * 32, "s")


def document(generation: int, version: int = 1, *, revoked: bool = False, minute: int | None = None, **more: Any) -> dict[str, Any]:
    key: dict[str, Any] = {"public_id": "k1", "key_id": "alice", "team_id": "blue", "version": version}
    if revoked:
        key["revoked"] = True
    else:
        key["digests"] = [{"kind": "sha256_secret", "hex": DIGEST}]
    at = f"2027-01-15T08:{generation % 60 if minute is None else minute:02}:00Z"
    return {"format": 1, "generation": generation, "issued_at": at, "keys": [key], **more}


MORE: dict[str, Any] = {
    "max_age_s": 60,
    "on_expired": "deny_new_keys",
    "teams": [{"team_id": "blue", "name": "Blue"}],
    "limits": [
        {"dimension": "key", "limits": [{"name": "rpm", "kind": "rate", "unit": "requests", "amount": 2, "period_s": 60}]},
        {"dimension": "team", "value": "blue", "limits": []},
    ],
    "prices": {"overrides": {"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}},
    "aliases": {"fast": "m"},
    "policy": {"beta": 3},
}


class Control:
    """An applier over everything, in a folder, with times that tests say."""

    def __init__(self, folder: Any, **more: Any) -> None:
        self.keys, self.limits, self.prices = KeySet(), Limits(), PriceSlot()
        self.folder = folder
        self.applier = SnapshotApplier(
            trust=[SIGNER.verifying_key], directory=folder / "kept", keys=self.keys, limits=self.limits, prices=self.prices, **more
        )

    def apply(self, doc: dict[str, Any], at: int = 1, key: SigningKey = SIGNER) -> Any:
        return self.applier.apply(sign_snapshot(doc, key), now_ns=at * S, wall_ns=WALL + at * S)

    def refused(self, bytes: bytes, at: int = 2) -> Error:
        with pytest.raises(Error) as caught:
            self.applier.apply(bytes, now_ns=at * S, wall_ns=WALL)
        return caught.value

    def verdict(self, at: int = 1) -> KeyVerdict:
        return self.keys.check(KEY, now_ns=at * S, wall_ns=WALL).verdict


@pytest.fixture
def control(tmp_path) -> Control:
    return Control(tmp_path)


def test_what_is_signed_is_believed_of_that_signer_alone() -> None:
    assert SigningKey.parse(SIGNER.pem(), "t").verifying_key == SIGNER.verifying_key
    assert VerifyingKey.parse(SIGNER.verifying_key.pem(), "t") == SIGNER.verifying_key != STRANGER.verifying_key
    assert VerifyingKey("t", SIGNER.verifying_key.public_key) == SIGNER.verifying_key
    assert SigningKey.generate().key_id.startswith("ed25519-")
    assert SIGNER.pem() not in repr(SIGNER) and len({SIGNER.verifying_key, STRANGER.verifying_key}) == 2
    signed = sign_snapshot(b"hello", SIGNER)
    assert verify_snapshot(signed, [STRANGER.verifying_key, SIGNER.verifying_key]) == (b"hello", "t")
    for i in range(len(signed)):
        with pytest.raises(Error):
            verify_snapshot(signed[:i] + bytes([signed[i] ^ 1]) + signed[i + 1 :], [SIGNER.verifying_key])
    false = VerifyingKey("t", STRANGER.verifying_key.public_key)
    for trust, code in (([], "not_found"), ([STRANGER.verifying_key], "not_found"), ([false], "invalid_value")):
        with pytest.raises(Error) as caught:
            verify_snapshot(signed, trust)
        assert caught.value.code == code
    assert verify_snapshot(b"hello", allow_unsigned=True) == (b"hello", "")
    with pytest.raises(Error) as caught:
        verify_snapshot(b"hello", [SIGNER.verifying_key])
    assert caught.value.code == "invalid_value"
    with pytest.raises(Error) as caught:
        SigningKey.parse("nonsense")
    assert caught.value.code == "malformed" and "nonsense" not in str(caught.value)
    with pytest.raises(ValueError, match="32 bytes"):
        SigningKey.from_seed(b"short")


def test_a_snapshot_is_read_whole() -> None:
    snapshot = parse_snapshot(document(7, **MORE))
    assert (snapshot.generation, snapshot.max_age_ns, snapshot.on_expired) == (7, 60 * S, OnExpired.deny_new_keys)
    assert snapshot.issued_at_ns == WALL + 7 * 60 * S and snapshot.key_count == 1
    (key,) = snapshot.keys
    assert (key.public_id, key.key_id, key.team_id, key.version, key.revoked) == ("k1", "alice", "blue", 1, False)
    assert key.digests == (key_digest(KEY, KeyDigestKind.sha256_secret),)
    assert snapshot.teams == (SnapshotTeam("blue", "Blue"),)
    default, blue = snapshot.limits
    assert (default.dimension, default.value, blue.value, blue.limits) == ("key", None, "blue", ())
    assert default.limits == (LimitSpec("rpm", amount=2),)
    assert snapshot.prices.overrides == MORE["prices"]["overrides"] and snapshot.prices.file == ""
    assert snapshot.aliases == {"fast": "m"} and snapshot.policy == Policy(beta=3.0) and snapshot.forced_rollback is None
    assert parse_snapshot(snapshot.json()) == snapshot != parse_snapshot(document(8))
    back = parse_snapshot(json.dumps(document(3, forced_rollback={"from": 9, "reason": "wrong prices"})))
    assert back.forced_rollback == ForcedRollback(9, "wrong prices") and back.policy is None
    assert parse_snapshot(document(1, policy={}), base_policy=Policy(beta=5.0)).policy == Policy(beta=5.0)


def test_a_broken_snapshot_is_refused_with_the_path_of_each_fault() -> None:
    broken = document(1, revokd=True, limits=[{"dimension": "key", "limits": [{"name": "x", "kind": "rate"}]}])
    broken["keys"][0]["digests"][0]["hex"] = "12"
    with pytest.raises(SnapshotError) as caught:
        parse_snapshot(broken)
    paths = [path for path, _ in caught.value.faults]
    assert "keys[0].digests[0].hex" in paths and "revokd" in paths and any(p.startswith("limits[0].limits[0]") for p in paths)
    assert caught.value.code == "invalid_argument" and "keys[0].digests[0].hex" in str(caught.value)
    assert all(what for _, what in caught.value.faults)
    whole = json.dumps(document(1))
    for size in range(len(whole)):  # half written
        with pytest.raises(Error):
            parse_snapshot(whole[:size])
    cases = (("{", "invalid_json"), ("[]", "not_an_object"), ('{"format": 2}', "unsupported"))
    for text, code in cases:
        with pytest.raises(Error) as other:
            parse_snapshot(text)
        assert other.value.code == code
    with pytest.raises(Error) as other:
        parse_snapshot(whole, max_bytes=10)
    assert other.value.code == "too_large"


def test_what_is_applied_is_in_keys_limits_prices_and_policy(tmp_path) -> None:
    router, heard = Router(), []
    control = Control(tmp_path, router=router, applied=lambda snapshot: heard.append((snapshot.generation, snapshot.key_count)))
    assert control.prices.get() is None and control.verdict() is KeyVerdict.unknown
    assert control.applier.status(S).age_ns is None
    applied = control.apply(document(7, **MORE))
    assert (applied.generation, applied.unchanged, applied.rolled_back, applied.signed_by) == (7, False, False, "t")
    assert applied.kept_error == "" and heard == [(7, 1)]
    grant = control.keys.check(KEY, now_ns=S, wall_ns=WALL)
    assert grant and (grant.key_id, grant.team_id, grant.generation) == ("alice", "blue", 7)
    scope = control.limits.scope("key", "alice")
    assert [limit.amount for limit in control.limits.limits(scope)] == [2]
    assert router.policy.beta == 3

    table = control.prices.get()
    assert table is not None and table is control.prices.get() and table.find("fast") == "m"
    with pytest.raises(Error) as caught:
        table.set_alias("x", "m")
    assert caught.value.code == "unsupported"
    assert table.cost(Usage(input_tokens=1000, output_tokens=10), "fast").picos == 1_020_000_000
    control.apply(document(8), 2)
    new = control.prices.get()
    assert new is not None and new is not table and new.find("fast") is None and table.find("fast") == "m"
    own = PriceTable()
    control.prices.set(own)
    assert control.prices.get() is own
    with pytest.raises(Error):
        own.set_alias("x", "m")
    control.prices.set(None)
    assert control.prices.get() is None
    page = control.applier.prometheus(5 * S)
    assert "warmroute_control_generation 8\n" in page and "warmroute_control_age_seconds 3\n" in page


def test_what_is_refused_changes_nothing(tmp_path) -> None:
    def check(snapshot: Snapshot) -> None:
        if snapshot.generation == 66:
            raise KeyError("not this one")
        if snapshot.generation == 67:
            raise Error("full", "capacity", 5)

    control = Control(tmp_path, check=check)
    control.apply(document(7))
    assert control.refused(sign_snapshot(document(7, 2), SIGNER)).code == "stale"
    assert control.refused(sign_snapshot(document(6, 2), SIGNER)).code == "stale"
    assert "x " in str(control.refused(sign_snapshot(document(9, x=1), SIGNER)))
    assert "KeyError: 'not this one'" in str(control.refused(sign_snapshot(document(66, 2, revoked=True), SIGNER)))
    assert control.refused(sign_snapshot(document(67, 2, revoked=True), SIGNER)).code == "capacity"
    revoking = sign_snapshot(document(9, 2, revoked=True), SIGNER)
    assert control.refused(json.dumps(document(9)).encode()).code == "invalid_value"
    assert control.refused(sign_snapshot(document(9), STRANGER)).code == "not_found"
    assert control.refused(revoking[:-1]).code == "invalid_value"
    status = control.applier.status(2 * S)
    assert (status.generation, status.refused, status.last_code) == (7, 8, warmroute.Code.invalid_value) and status.last_error
    assert control.verdict(2) is KeyVerdict.accepted
    assert control.apply(document(7), 3).unchanged
    control.applier.confirm(now_ns=9 * S, wall_ns=WALL)
    status = control.applier.status(10 * S)
    assert (status.confirmed, status.age_ns) == (2, S)


def test_a_roll_back_is_forced_and_recorded_and_tombstones_outlive_it_and_a_restart(tmp_path) -> None:
    back, heard = {"from": 9, "reason": "wrong prices"}, []
    control = Control(tmp_path, rolled_back=heard.append)
    assert control.applier.load_last_good() is False
    control.apply(document(7))
    control.apply(document(9, 2, revoked=True), 2)
    assert control.verdict(2) is KeyVerdict.revoked
    assert control.apply(document(8, minute=10, forced_rollback=back), 3).rolled_back
    assert control.verdict(3) is KeyVerdict.revoked
    assert control.refused(sign_snapshot(document(6, minute=11, forced_rollback=back), SIGNER)).code == "stale"
    (record,) = control.applier.rollbacks()
    assert heard == [record]
    assert (record.from_, record.to, record.reason, record.signed_by, record.at_ns) == (9, 8, "wrong prices", "t", WALL + 3 * S)

    control = Control(tmp_path)  # a restart
    assert control.applier.load_last_good(now_ns=0, wall_ns=WALL + 60 * S)
    status = control.applier.status(0)
    assert (status.generation, status.top_generation, status.from_disk, status.age_ns) == (8, 9, True, 57 * S)
    assert control.verdict(0) is KeyVerdict.revoked and control.applier.rollbacks() == [record]
    assert control.refused(sign_snapshot(document(9), SIGNER)).code == "stale"
    control.apply(document(10, 3), 62)  # issued anew
    assert control.verdict(62) is KeyVerdict.accepted
    control.applier.revoke("k1")
    control.apply(document(11, 99), 63)
    assert control.verdict(63) is KeyVerdict.revoked
    with pytest.raises(Error):
        control.applier.revoke("")

    (tmp_path / "kept" / "last_good").write_bytes(b"{")
    control = Control(tmp_path)
    with pytest.raises(Error, match="last good"):
        control.applier.load_last_good(now_ns=0, wall_ns=WALL)
    control.apply(document(12, 100), 64)
    assert control.verdict(64) is KeyVerdict.revoked


def test_what_happens_when_control_is_silent_is_said_by_the_snapshot(control) -> None:
    control.apply(document(1, max_age_s=10, on_expired="deny_new_keys"))
    assert control.applier.status(12 * S).expired and control.verdict(12) is KeyVerdict.stale_set  # never accepted before
    assert control.verdict(2) is KeyVerdict.accepted and control.verdict(12) is KeyVerdict.accepted
    control.apply(document(2, max_age_s=10, on_expired="deny_all"), 20)
    assert control.verdict(31) is KeyVerdict.stale_set
    control.applier.confirm(now_ns=31 * S)
    assert control.verdict(31) is KeyVerdict.accepted
    control.apply(document(3, max_age_s=10, on_expired="serve"), 40)
    assert control.verdict(99) is KeyVerdict.accepted and control.applier.status(99 * S).expired


def until(what: Any) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_file_that_is_replaced_is_in_force_while_another_thread_checks_keys(control, tmp_path) -> None:
    file, seen, stop = tmp_path / "snapshot", [], threading.Event()

    def check_keys() -> None:
        last = 0
        while not stop.is_set():
            grant = control.keys.check(KEY, now_ns=5 * S, wall_ns=WALL)
            if grant.verdict not in (KeyVerdict.accepted, KeyVerdict.revoked) or (grant and grant.generation < last):
                seen.append(grant)
            last = grant.generation if grant else last

    def status() -> Any:
        return control.applier.status(5 * S)

    with FileSource(file, control.applier, interval_ns=5_000_000, clock=lambda: (5 * S, WALL)) as source:
        source.look_now()
        assert source.status().missing
        replace_file(file, sign_snapshot(document(1), SIGNER))
        source.look_now()
        assert source.status().good and control.verdict() is KeyVerdict.accepted
        checker = threading.Thread(target=check_keys)
        checker.start()
        for generation in range(2, 10):
            signed = sign_snapshot(document(generation), SIGNER)
            file.write_bytes(signed[: len(signed) // 2])  # half written, then whole
            source.look_now()
            assert not source.status().good and status().generation == generation - 1
            replace_file(file, signed)
            until(lambda generation=generation: status().generation == generation)  # nobody asks it to look
        replace_file(file, sign_snapshot(document(90, 9, revoked=True), STRANGER))
        source.look_now()
        assert source.status().last_error
        os.unlink(file)
        source.look_now()
        assert source.status().missing and status().generation == 9 and control.verdict(5) is KeyVerdict.accepted
        replace_file(file, sign_snapshot(document(10, 2, revoked=True), SIGNER))
        until(lambda: control.verdict(5) is KeyVerdict.revoked)
        stop.set()
        checker.join()
        assert status().age_ns == 0
    assert source.closed and seen == []
    with pytest.raises(ValueError, match="closed"):
        source.look_now()


def test_a_file_can_be_watched_for_a_callback(tmp_path) -> None:
    file, taken, same, lines = tmp_path / "file", [], threading.Event(), []

    def take(data: bytes) -> None:
        if data == b"bad":
            raise ValueError("this is bad")
        taken.append(data)

    file.write_bytes(b"bad")
    log = lambda level, message: lines.append((level, message))  # noqa: E731
    with FileSource(file, on_bytes=take, on_same=same.set, log=log, interval_ns=1_000_000) as source:
        source.look_now()
        assert source.status().last_error == "on_bytes: ValueError: this is bad"
        replace_file(file, b"good", mode=0o644)
        assert same.wait(20) and taken == [b"good"]
    assert lines
    with pytest.raises(ValueError, match="either"):
        FileSource(file)
    with pytest.raises(Error, match="interval"):
        FileSource(file, on_bytes=take, interval_ns=0)
    with pytest.raises(Error) as caught:
        replace_file(tmp_path / "no" / "such", b"x")
    assert caught.value.code == "io"


def test_a_callback_is_not_made_to_wait_for_itself(tmp_path) -> None:
    said: list[str] = []
    holder: list[Any] = []

    def applied(snapshot: Snapshot) -> None:
        for call in (holder[0].applier.confirm, lambda: holder[0].applier.revoke("k1"), *(s.close for s in holder[1:])):
            try:
                call()
            except RuntimeError as error:
                said.append(str(error))
        said.append(str(holder[0].applier.status().generation))

    control = Control(tmp_path, applied=applied)
    holder.append(control)
    control.apply(document(1))
    assert len(said) == 3 and said[-1] == "1"
    replace_file(tmp_path / "file", sign_snapshot(document(2), SIGNER))
    source = FileSource(tmp_path / "file", control.applier, interval_ns=1_000_000)
    holder.append(source)
    replace_file(tmp_path / "file", sign_snapshot(document(3), SIGNER))
    until(lambda: said[-1] == "3")
    source.close()
    assert any("close" in line for line in said)


def test_an_applier_and_what_calls_back_into_it_are_collected(tmp_path) -> None:
    control = Control(tmp_path, applied=lambda _: control)
    control.apply(document(1))
    gone = weakref.ref(control.applier)
    source = FileSource(tmp_path / "file", control.applier, log=lambda *_: source)
    del control, source
    gc.collect()
    assert gone() is None


def test_a_journal_is_handed_over_until_it_is_taken(tmp_path) -> None:
    refusals, got = [OSError("come again"), OSError("come again")], []

    def deliver(records: list[Any]) -> None:
        if refusals:
            raise refusals.pop()
        got.extend(records)

    def add(count: int) -> None:
        for _ in range(count):
            event = UsageEvent(key_id="alice", usage=Usage(input_tokens=100 + len(got)))
            journal.end(journal.begin(event), event)

    quick = {"interval_ns": 1_000_000, "backoff_from_ns": 1_000_000, "backoff_to_ns": 2_000_000}
    with Journal(tmp_path / "journal") as journal:
        add(5)
        with Handover(journal, deliver, batch=2, **quick) as handover:
            assert handover.drain(20 * S)
            status = handover.status()
            assert (status.delivered, status.failures, status.failures_in_row, status.drained) == (5, 2, 0, True)
            assert "come again" in status.last_error and status.acknowledged == journal.acknowledged
            assert "warmroute_handover_events_total 5\n" in handover.prometheus()
        assert [record.event.key_id for record in got] == ["alice"] * 5 and len({record.event_id for record in got}) == 5
        add(3)
        with Handover(journal, json_lines=tmp_path / "lines", **quick) as handover:
            assert handover.drain(20 * S)
        with pytest.raises(ValueError, match="either"):
            Handover(journal)
        with pytest.raises(Error, match="batch"):
            Handover(journal, deliver, batch=0)
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert len(lines) == 3
    with pytest.raises(ValueError, match="closed"):
        Handover(journal, deliver)
