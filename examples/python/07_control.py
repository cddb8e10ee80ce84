"""Both sides of control: an operator issues a key and later revokes it, in a signed file; a proxy that watches the file obeys.

What the operator does, `warmroute-keys` does as a command (examples/keys). What was used goes out to whoever bills.
"""

from __future__ import annotations

import datetime
import pathlib
import secrets
import tempfile
import time
from collections.abc import Callable
from typing import Any

import warmroute
from warmroute import control, usage

PEPPER = secrets.token_bytes(32)  # of this deployment; both sides have it


class Operator:
    """Has the signing key. Writes what is to be, whole, under a generation that rises."""

    def __init__(self, file: pathlib.Path) -> None:
        self.signing = control.SigningKey.generate()
        self.file = file
        self.generation = 0
        self.keys: dict[str, dict[str, Any]] = {}

    def issue(self, public_id: str, team: str) -> str:
        secret = f"sk-{public_id}-{secrets.token_hex(16)}"  # told once; only its digest is kept
        digest = usage.key_digest(secret, pepper=PEPPER, pepper_version=1)
        self.keys[public_id] = {
            "public_id": public_id,
            "team_id": team,
            "version": 1,
            "digests": [{"kind": "hmac_sha256", "pepper_version": 1, "hex": digest.digest.hex()}],
        }
        return secret

    def revoke(self, public_id: str) -> None:
        self.keys[public_id] = {"public_id": public_id, "team_id": "blue", "version": 2, "revoked": True}

    def publish(self, **more: Any) -> None:
        self.generation += 1
        document = {
            "format": 1,
            "generation": self.generation,
            "issued_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "max_age_s": 3600,
            "on_expired": "deny_new_keys",
            "keys": list(self.keys.values()),
            "limits": [
                {"dimension": "key", "limits": [{"name": "rpm", "kind": "rate", "unit": "requests", "amount": 60, "period_s": 60}]}
            ],
            "prices": {"overrides": {"m-large": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}}},
            **more,
        }
        control.parse_snapshot(document)  # the proxies would refuse a broken one; better to hear it here
        control.replace_file(self.file, control.sign_snapshot(document, self.signing))


def until(what: Callable[[], bool]) -> float:
    """Seconds that it took."""
    start = time.monotonic()
    while not what():
        time.sleep(0.005)
    return time.monotonic() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        operator = Operator(folder / "snapshot")

        # The proxy: what requests are judged by, and who fills it.
        router = warmroute.Router()
        keys, limits, prices = usage.KeySet(), usage.Limits(), control.PriceSlot()
        keys.add_pepper(1, PEPPER)
        applier = control.SnapshotApplier(
            trust=[operator.signing.verifying_key], directory=folder / "control", keys=keys, limits=limits, prices=prices, router=router
        )
        print("last good snapshot on disk:", applier.load_last_good())
        with (
            control.FileSource(operator.file, applier),
            usage.Journal(folder / "journal") as journal,
            control.Handover(journal, json_lines=folder / "bills.jsonl") as handover,
        ):
            secret = operator.issue("k1", "blue")
            operator.publish(policy={"beta": 2.0})
            took = until(lambda: applier.status().generation == 1)
            grant = keys.check(secret)
            print(f"a new key is {grant.verdict.name} after {took < 1 and 'less' or 'more'} than a second, of team {grant.team_id}")
            print("its limits:", limits.limits(limits.scope("key", grant.key_id))[0].name, "| policy beta:", router.policy.beta)

            table = prices.get()  # a request takes it once and keeps it
            assert table is not None
            used = usage.Usage(input_tokens=1000, output_tokens=50)
            event = usage.UsageEvent(key_id=grant.key_id, request_model="m-large", usage=used, cost=table.cost(used, "m-large"))
            journal.end(journal.begin(event), event)
            print("handed over:", handover.drain(10_000_000_000), "|", (folder / "bills.jsonl").read_text().count("\n"), "line")

            operator.file.write_bytes(b'{"warmroute_snapshot":1,')  # somebody's accident
            until(lambda: applier.status().refused > 0)
            print("a broken file:", keys.check(secret).verdict.name, "still;", applier.status().last_error[:60])
            operator.revoke("k1")
            operator.publish()
            until(lambda: applier.status().generation == 2)
            print("revoked:", keys.check(secret).status, keys.check(secret).verdict.name)
            try:
                applier.apply(control.sign_snapshot({"format": 1, "generation": 1, "issued_at": "2026-01-01T00:00:00Z", "keys": []}, operator.signing))
            except warmroute.Error as error:
                print("an older one:", error.code)


if __name__ == "__main__":
    main()
