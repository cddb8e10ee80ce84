"""What control says, taken in; what was used, handed out. Beside the path of requests, which never wait for it.

    from warmroute import control, usage

    keys, limits, prices = usage.KeySet(), usage.Limits(), control.PriceSlot()
    applier = control.SnapshotApplier(
        trust=[control.VerifyingKey.parse(open("control.pub").read())],
        directory="control", keys=keys, limits=limits, prices=prices, router=router)
    applier.load_last_good()
    with control.FileSource("/etc/warmroute/snapshot", applier):     # a new file is in force in under a second
        ...

A snapshot is one JSON document of keys, teams, limits, prices and policy (parse_snapshot), signed (sign_snapshot), and written as a
whole (replace_file). Broken, older, half-written or unsigned ones change nothing. examples/python/07_control.py shows both sides.
"""

from __future__ import annotations

from ._control import (
    Applied,
    ControlStatus,
    FileSource,
    FileSourceStatus,
    ForcedRollback,
    Handover,
    HandoverStatus,
    RollbackRecord,
    Snapshot,
    SnapshotApplier,
    SnapshotLimits,
    SnapshotPrices,
    SnapshotTeam,
    VerifiedSnapshot,
    parse_snapshot,
    verify_snapshot,
)
from ._core import OnExpired, PriceSlot, SigningKey, VerifyingKey, replace_file, sign_snapshot
from ._error import SnapshotError

__all__ = [
    "Applied",
    "ControlStatus",
    "FileSource",
    "FileSourceStatus",
    "ForcedRollback",
    "Handover",
    "HandoverStatus",
    "OnExpired",
    "PriceSlot",
    "RollbackRecord",
    "SigningKey",
    "Snapshot",
    "SnapshotApplier",
    "SnapshotError",
    "SnapshotLimits",
    "SnapshotPrices",
    "SnapshotTeam",
    "VerifiedSnapshot",
    "VerifyingKey",
    "parse_snapshot",
    "replace_file",
    "sign_snapshot",
    "verify_snapshot",
]
