"""Writes python/warmroute/_core.pyi from the built extension, or compares it: python/tools/stubs.py [--check].

pybind11-stubgen reads the docstrings; what it cannot know is put right here: enums get their numbers, integers are
SupportsIndex, keyword dictionaries are typed.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

import warmroute._core

STUB = pathlib.Path(__file__).resolve().parent.parent / "warmroute" / "_core.pyi"
HEAD = "# Written by python/tools/stubs.py from the built extension; do not edit.\n"


def generate() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "warmroute._core", "-o", folder, "--exit-code"]
        subprocess.run([*command, "--enum-class-locations", ".*:warmroute._core"], check=True)
        return (pathlib.Path(folder) / "warmroute" / "_core.pyi").read_text()


def with_enum_numbers(text: str) -> str:
    enums = re.findall(r"^class (\w+)\(enum\.IntEnum\):", text, re.MULTILINE)
    for name in enums:
        begin = text.index(f"class {name}(enum.IntEnum):")
        end = text.find("\nclass ", begin + 1)
        body = text[begin:end]
        new = re.sub(r"    @classmethod\n    def __new__\(cls, value\):\n        \.\.\.\n", "", body)
        new = re.sub(r"    def __format__\(self, format_spec\):\n        \.\.\.(\n|$)", "", new).rstrip("\n")
        new = re.sub(r"^    \w+: typing\.ClassVar\[\w+\]\n?", "", new + "\n", flags=re.MULTILINE).rstrip("\n")
        members = getattr(warmroute._core, name).__members__
        new += "".join(f"\n    {word} = {int(member)}" for word, member in members.items())
        text = text[:begin] + new + text[end:]
    return text


def corrected(text: str) -> str:
    text = with_enum_numbers(text)
    text = text.replace("typing.SupportsInt | typing.SupportsIndex", "typing.SupportsIndex")
    text = re.sub(r"\*\*(kwargs|knobs)\b(?!:)", r"**\1: typing.Any", text)
    text = text.replace("-> dict[str, object]", "-> dict[str, typing.Any]")
    text = re.sub(r"def __eq__\(self, arg0: \w+\) -> bool", "def __eq__(self, other: object, /) -> bool", text)
    text = re.sub(r"    def __(get|set)state__\(.*\n(        \"\"\"\n(.*\n)*?        \"\"\"\n|        \.\.\.\n)?", "", text)
    text = re.sub(r"__all__: list\[str\] = \[(.*)\]", r"__all__ = [\1]", text)
    text = text.replace("__version__: str = ", "__version__: str  # = ")
    text = re.sub(r"^has_zmq: bool = \w+", "has_zmq: bool", text, flags=re.MULTILINE)  # of the build, not of the package
    text = re.sub(r"^USAGE_ANOMALIES: tuple = ", "USAGE_ANOMALIES: tuple[str, ...] = ", text, flags=re.MULTILINE)
    if "__version__" not in text:
        text += "__version__: str\n"
    return HEAD + "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main() -> None:
    text = corrected(generate())
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text)
        return
    old = STUB.read_text()
    if old != text:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(STUB), "generated"))
        sys.exit("the checked-in stubs are not those of the extension: run python/tools/stubs.py with it installed")


if __name__ == "__main__":
    main()
