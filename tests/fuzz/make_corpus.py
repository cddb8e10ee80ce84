#!/usr/bin/env python3
"""make_corpus.py <folder> <case file>…: one corpus file per body of the case files (tests/data/request_*.jsonl), or per line of a
trace, of policies, of snapshots, of metrics or price tables, or per metrics page, or per answer, or per hex string where the bytes are binary, or per payload of an engine's event message.

The first byte of a body's corpus file says which API the rest is read as, a payload's which options; see request_body_fuzz.cpp and
kv_events_fuzz.cpp.
"""
import base64
import json
import pathlib
import sys

APIS = ["chat", "completions", "responses", "embeddings", "messages"]
LARGEST = 4000  # bytes; the point of larger bodies is their size, which a fuzzer does not need
MOST_PLAIN_LINES = 50
PLAIN = ("policies", "metrics_tables", "price_tables", "snapshots", "model_maps")  # whole lines


def bodies(case):
    for body, api in (("body", "api"), ("a", "api_a"), ("b", "api_b")):
        if body not in case or case[body] is None or body + "_gen" in case:
            continue
        raw = case[body].encode("utf-8", "surrogatepass")
        if case.get("body_encoding") == "base64":
            raw = base64.b64decode(raw)
        yield APIS.index(case[api]), raw


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name in sys.argv[2:]:
        if name.endswith(".prom"):  # a page, as it is
            (folder / pathlib.Path(name).stem).write_bytes(pathlib.Path(name).read_bytes()[:LARGEST])
            count += 1
            continue
        for line in open(name, encoding="utf-8"):
            case = json.loads(line)
            if "trace" in case:  # a few lines of a trace, as they are
                (folder / f"{pathlib.Path(name).stem}_{count}").write_bytes(case["trace"].encode())
                count += 1
                continue
            if "hex" in case:
                (folder / f"{pathlib.Path(name).stem}_{count}").write_bytes(bytes.fromhex(case["hex"]))
                count += 1
                continue
            if "framing" in case:  # an answer of a provider
                raw = base64.b64decode(case["body"]) if "body_encoding" in case else case["body"].encode()
                (folder / f"{pathlib.Path(name).stem}_{count}").write_bytes(bytes([count % 256]) + raw[:LARGEST])
                count += 1
                continue
            if "frames_hex" in case:
                frames = [bytes.fromhex(frame) for frame in case["frames_hex"]]
                (folder / f"{pathlib.Path(name).stem}_{count}").write_bytes(bytes([count % 8]) + frames[-1])
                count += 1
                continue
            plain = "hash_ids" in case or any(word in name for word in PLAIN)
            if plain and count < MOST_PLAIN_LINES and len(line) <= LARGEST:
                (folder / f"{pathlib.Path(name).stem}_{count}").write_text(line.strip())
                count += 1
            for api, raw in bodies(case):
                if len(raw) <= LARGEST:
                    (folder / f"{pathlib.Path(name).stem}_{count}").write_bytes(bytes([api]) + raw)
                    count += 1
    (folder / ".made").write_text(f"{count}\n")


if __name__ == "__main__":
    main()
