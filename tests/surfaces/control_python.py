"""The operations of generate_control.hpp through the Python interface."""

from __future__ import annotations

import warmroute
from warmroute import control, usage

NEVER = 2**63 - 1


class ControlRunner:
    def __init__(self, limits: usage.Limits) -> None:
        self.keys = usage.KeySet()
        self.prices = control.PriceSlot()
        signer = control.SigningKey.from_seed(b"s" * 32, "s")
        self.applier = control.SnapshotApplier(trust=[signer.verifying_key], keys=self.keys, limits=limits, prices=self.prices)

    def run(self, op: str, rest: str, report: usage.UsageReport) -> str | None:
        """returns: None: the operation is none of these. report: of the last meter."""
        if op == "control":
            return self.apply(*rest.split(" ", 3))
        if op == "confirm":
            steady, wall = map(int, rest.split(" "))
            self.applier.confirm(now_ns=steady, wall_ns=wall)
            age = self.applier.status(steady).age_ns
            return f"confirm {NEVER if age is None else age}"
        if op == "revoke":
            public_id, version = rest.split(" ")
            return f"revoke {self.code_of(lambda: self.applier.revoke(public_id, int(version)))}"
        if op == "holder":
            key, steady, wall = rest.split(" ")
            grant = self.keys.check(key, now_ns=int(steady), wall_ns=int(wall))
            if not grant:
                return f"holder {int(grant.verdict)}"
            return f"holder 0 {grant.key_id} {grant.team_id} {grant.version} {grant.generation}"
        if op == "priced":
            table = self.prices.get()
            picos = None if table is None else table.cost(report, rest).picos
            return f"priced {-1 if picos is None else picos}"
        return None

    @staticmethod
    def code_of(call) -> int:
        try:
            call()
        except warmroute.Error as error:
            return error.code_number
        return 0

    def apply(self, envelope: str, steady: str, wall: str, payload: str) -> str:
        data = (payload if envelope == "-" else f"{envelope}\n{payload}").encode()
        code = self.code_of(lambda: self.applier.apply(data, now_ns=int(steady), wall_ns=int(wall)))
        s = self.applier.status(int(steady))
        age = -1 if s.age_ns is None else s.age_ns
        return f"control {code} {s.generation} {s.top_generation} {s.keys} {s.revoked} {s.refused} {s.rollbacks} {age}"
