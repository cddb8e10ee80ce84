"""The exception of the package: bad input and stale handles. What policy foresees (no replica) is a verdict instead."""

from __future__ import annotations


class Error(ValueError):
    """What went wrong, where, and what to do.

    code: the name, as in `warmroute.Code`; tolerate unknown ones. code_number: its fixed number.
    offset: bytes from the start of the input where that is known, else None.
    """

    code: str
    code_number: int
    offset: int | None

    def __init__(self, message: str, code: str = "internal", code_number: int = 9, offset: int | None = None) -> None:
        super().__init__(message, code, code_number, offset)
        self.code = code
        self.code_number = code_number
        self.offset = offset

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.offset is None else f"{message} (at byte {self.offset})"


class SnapshotError(Error):
    """A document that control could not mean. faults: (path, what is wrong there), e.g. ('keys[3].digests[0].hex', 'must be ...')."""

    faults: tuple[tuple[str, str], ...]

    def __init__(
        self,
        message: str,
        code: str = "invalid_argument",
        code_number: int = 1,
        offset: int | None = None,
        faults: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message, code, code_number, offset)
        self.faults = faults
