"""API keys: records and digests for whoever issues them, and the set that says whose a key is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ._core import KeyDigestKind, digest_of_key
from ._core import KeySet as CoreKeySet

REVOKED_FOREVER = 2**64 - 1
"""The version of a KeyRecord with `revoked` that nothing brings back."""


@dataclasses.dataclass(frozen=True)
class KeyDigest:
    """One secret of a key; several with overlapping windows are a rotation. digest: 32 bytes, see key_digest.

    not_before_ns, not_after_ns: wall clock, the end exclusive; None: open.
    """

    digest: bytes = dataclasses.field(repr=False)
    kind: KeyDigestKind | str = KeyDigestKind.hmac_sha256
    pepper_version: int = 0
    not_before_ns: int | None = None
    not_after_ns: int | None = None


@dataclasses.dataclass(frozen=True)
class KeyRecord:
    """A key as control describes it. public_id '': all digests are sha256_key, and key_id names the key.

    key_id: what the books call it; '': public_id. version: of this record, rising. revoked: a tombstone, digests are ignored.
    """

    public_id: str = ""
    key_id: str = ""
    team_id: str = ""
    version: int = 0
    revoked: bool = False
    digests: tuple[KeyDigest, ...] = ()


def key_digest(
    key: str | bytes,
    kind: KeyDigestKind | str = "hmac_sha256",
    *,
    pepper: str | bytes = b"",
    pepper_version: int = 0,
    not_before_ns: int | None = None,
    not_after_ns: int | None = None,
) -> KeyDigest:
    """What to store of a key `<anything>-<public id>-<secret>`, for whoever issues keys. pepper: for hmac_sha256.

    errors: Error invalid_argument: the key has no secret; internal: OpenSSL refuses.
    """
    digest = digest_of_key(key, kind, pepper_version, pepper)
    return KeyDigest(digest, kind, pepper_version, not_before_ns, not_after_ns)


class KeySet(CoreKeySet):
    """Whose a key is, by digests alone: from full snapshots and changes that control pushes. Thread-safe; readers never wait.

        keys = KeySet()
        keys.add_pepper(1, pepper)
        keys.replace(1, [KeyRecord("id1", team_id="blue", digests=(key_digest(key, pepper=pepper, pepper_version=1),))])
        grant = keys.check(key)
        if not grant: ...                              # answer grant.status: 401, or 503

    max_age_ns: since control was last heard of, 0: no limit; on_stale: what then ('refuse_new': keys accepted before go on). Revocations outlive snapshots that are older.
    """

    def replace(self, generation: int, records: Iterable[KeyRecord], now_ns: int | None = None) -> None:
        """A full snapshot: keys that it does not name are gone; revocations stay unless the record is newer than them.

        errors: Error stale: not newer than `generation` of the set; invalid_argument: nothing changes then.
        """
        self._replace(generation, records, now_ns)

    def apply(self, base: int, generation: int, changes: Iterable[KeyRecord], now_ns: int | None = None) -> None:
        """Changes of generation `base`; a record that is not newer than what is there is skipped.

        errors: Error stale: a full snapshot is needed; invalid_argument: nothing changes then.
        """
        self._apply(base, generation, changes, now_ns)

    def roll_back(self, from_: int, generation: int, records: Iterable[KeyRecord], now_ns: int | None = None) -> None:
        """As replace, to a generation that may be older, or is the same.

        errors: Error stale: `from_` is not `generation` of the set; invalid_argument.
        """
        self._roll_back(from_, generation, records, now_ns)
