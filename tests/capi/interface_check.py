#!/usr/bin/env python3
"""The C interface against its lists: what the header declares, what symbols.txt promises, what the libraries export, what the tests name.

usage: interface_check.py <repository> [--shared lib.so] [--static lib.a]
Prints every difference; exits 1 if there is one.
"""

import argparse
import pathlib
import re
import subprocess
import sys


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def declared(header: str) -> dict[str, str]:
    """Function -> release, from the comment right before its declaration."""
    out: dict[str, str] = {}
    pattern = r"/\*\*(?P<doc>(?:(?!\*/).)*)\*/\s*WR_API [^;(]*?\b(?P<name>wr_\w+)\("
    for match in re.finditer(pattern, header, flags=re.S):
        since = re.search(r"\bsince: (\d+\.\d+\.\d+)\s*$", match["doc"].strip())
        out[match["name"]] = since[1] if since else "nothing"
    return out


def promised(symbols: str) -> dict[str, str]:
    lines = [line.split() for line in symbols.splitlines() if line and not line.startswith("#")]
    return {name: since for name, since in lines}


def nm(*arguments: str) -> list[tuple[str, str]]:
    """(kind, name) of every symbol that `nm` lists."""
    text = subprocess.run(["nm", *arguments], check=True, capture_output=True, text=True).stdout
    found = (re.match(r"[0-9a-f]+ (\S) (\S+)$", line) for line in text.splitlines())
    return [(m[1], m[2]) for m in found if m]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("--shared")
    parser.add_argument("--static")
    options = parser.parse_args()
    tests = options.repository / "tests/capi"
    header = "".join(p.read_text() for p in sorted((options.repository / "capi/include").glob("*.h")))
    plain = without_comments(header)
    lines = (options.repository / "capi/symbols.txt").read_text()
    functions, list_ = declared(header), promised(lines)
    faults: list[str] = []

    def compare(left: set[str], left_name: str, right: set[str], right_name: str) -> None:
        faults.extend(f"{name}: in {left_name}, not in {right_name}" for name in sorted(left - right))
        faults.extend(f"{name}: in {right_name}, not in {left_name}" for name in sorted(right - left))

    # Every declaration, commented or not, has to be among those with a comment.
    compare(set(re.findall(r"WR_API [^;(]*?\b(wr_\w+)\(", plain)), "the header", set(functions), "its commented declarations")
    compare(set(functions), "the header", set(list_), "capi/symbols.txt")
    for name in sorted(set(functions) & set(list_)):
        if functions[name] != list_[name]:
            faults.append(f"{name}: the header says since {functions[name]}, capi/symbols.txt {list_[name]}")
    names = [line for line in lines.splitlines() if not line.startswith("#")]
    if names != sorted(names) or len(set(names)) != len(names):
        faults.append("capi/symbols.txt is not sorted, or names one twice")

    if options.shared:
        exported = nm("-D", "--defined-only", options.shared)
        compare({name for _, name in exported}, "the shared library", set(list_), "capi/symbols.txt")
        faults.extend(f"{name}: exported as '{kind}', not as code" for kind, name in exported if kind != "T")
    if options.static:
        defined = {name for kind, name in nm("--defined-only", options.static) if kind == "T" and name.startswith("wr_")}
        compare(defined, "the static library", set(list_), "capi/symbols.txt")

    named = set(re.findall(r"\bwr_\w+(?=\()", "".join(without_comments(p.read_text()) for p in sorted(tests.glob("*_test.c")))))
    faults.extend(f"{name}: no test in tests/capi calls it" for name in sorted(set(list_) - named))

    layout = (tests / "layout.c").read_text()
    for struct, body in re.findall(r"typedef struct (wr_\w+) \{(.*?)\} \1;", plain, flags=re.S):
        members = [re.search(r"(\w+)\s*(?:\[[^]]*\])?$", m.strip())[1] for m in body.split(";") if m.strip()]  # type: ignore[index]
        wanted = [f"SIZE({struct}, "] + [f"AT({struct}, {member}, " for member in members]
        faults.extend(f"tests/capi/layout.c lacks {line}...)" for line in wanted if line not in layout)
    for body in re.findall(r"\benum \{(.*?)\};", plain, flags=re.S):
        for constant in re.findall(r"\bWR_\w+", body):
            if f"NUMBER({constant}, " not in layout:
                faults.append(f"tests/capi/layout.c lacks NUMBER({constant}, ...)")

    inits = (tests / "inits.h").read_text()
    faults.extend(f"tests/capi/inits.h lacks {name}" for name in re.findall(r"#define (WR_\w+_INIT)\b", header) if name not in inits)

    print("\n".join(faults) if faults else f"{len(list_)} functions agree everywhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
