#!/usr/bin/env python3
"""churn.py <warmroute-simulate> [--trace FILE] [--json FILE]: what happens to a fleet of 8 when replicas come, go, restart, flap or slow down.

50 agents behind one system prompt (closed loop, 40 turns each), and with --trace the conversation trace at utilisation 0.7; 8 x 70b-8xh100,
perfect view. Each case is compared, window by window, with the same run undisturbed: the worst window's mean TTFT over the undisturbed one,
and how long after the last event until every window is within 1.25 of it again. least/most: requests of a replica over the mean of the original
eight that never left; new: of those that were added.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

WINDOW_S = 20
FEWEST = 20  # requests in a window that counts
RECOVERED = 1.25


def cases(begin, length):
    """Events from `begin` s on, over some `length` s."""
    end = begin + length
    return {
        "undisturbed": "",
        "one at half speed": f"{begin} speed 2 500, {end} speed 2 1000",
        "rolling restart, 10 s each": f"{begin} rolling 0-7 10",
        "two leave, two come, cold": f"{begin} remove 3, {begin} remove 5, {begin + length / 2:g} add, {begin + length / 2:g} add",
        "two are added": f"{begin} add, {begin} add",
        "one flaps, 3 s of 6": ", ".join(f"{begin + 6 * i} flap 1 3" for i in range(int(length // 6))),
    }


def windows(run):
    out = {}
    for arrival, ttft, _, _ in run["per_request"]:
        if ttft >= 0:
            out.setdefault(arrival // (WINDOW_S * 1_000_000), []).append(ttft / 1000)
    return out


def simulate(program, workload, churn, seeds):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        subprocess.run([program, *workload, "--policy", "warmroute", "--seeds", str(seeds), "--per_request", "--churn", churn, "--json", str(out)],
                       check=True, capture_output=True)
        return json.loads(out.read_text())["cells"][0]["runs"]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def last_event_s(churn):
    ends = [0]
    for event in filter(None, (e.strip() for e in churn.split(","))):
        word = event.split()
        at = float(word[0])
        if word[1] == "rolling":
            first, last = map(int, word[2].split("-"))
            at += float(word[3]) * (last - first + 1)
        elif word[1] == "flap":
            at += float(word[3])
        ends.append(at)
    return max(ends)


def shares(run, stayed):
    """Least and most requests of a replica that was there all the time, and most of one that was added, over the mean."""
    counts = {}
    for _, ttft, _, replica in run["per_request"]:
        if replica >= 0:
            counts[replica] = counts.get(replica, 0) + 1
    there = [counts.get(r, 0) for r in stayed]
    new = [n for r, n in counts.items() if r >= 8]
    return min(there) / mean(there), max(there) / mean(there), max(new, default=0) / mean(there)


def compare(program, title, workload, seeds, begin, length):
    rows = {}
    print(f"\n{title} ({seeds} seeds)")
    print(f"{'':28}{'TTFT ms':>9}{'p99 ms':>9}{'hit':>8}{'worst window':>14}{'back after':>12}{'least/most/new':>18}{'lost':>6}")
    calm = simulate(program, workload, "", seeds)
    for name, churn in cases(begin, length).items():
        runs = calm if churn == "" else simulate(program, workload, churn, seeds)
        worst, back = [], []
        for run, before in zip(runs, calm):
            usual = windows(before)
            ratio = {w: mean(v) / mean(usual[w]) for w, v in windows(run).items() if min(len(v), len(usual.get(w, []))) >= FEWEST}
            after = {w: r for w, r in ratio.items() if (w + 1) * WINDOW_S > begin}
            worst.append(max(after.values()))
            late = [w for w, r in after.items() if r > RECOVERED]
            back.append(max(0.0, (max(late) + 1) * WINDOW_S - last_event_s(churn)) if late else 0.0)
        stayed = [r for r in range(8) if not ("remove" in churn and r in (3, 5))]
        low, high, new = zip(*(shares(run, stayed) for run in runs))
        row = {
            "ttft_ms": mean(r["ttft_us"]["mean"] / 1000 for r in runs), "p99_ms": mean(r["ttft_us"]["p99"] / 1000 for r in runs),
            "hit_ratio": mean(r["hit_ratio"] for r in runs), "worst_window": mean(worst), "recovery_s": mean(back),
            "least": min(low), "most": max(high), "new": max(new), "lost": sum(r["requests"] - r["completed"] for r in runs),
        }
        rows[name] = row
        print(f"{name:28}{row['ttft_ms']:9.0f}{row['p99_ms']:9.0f}{row['hit_ratio']:8.3f}{row['worst_window']:13.2f}x"
              f"{row['recovery_s']:10.0f} s{row['least']:8.2f}/{row['most']:.2f}/{row['new']:.2f}{row['lost']:6}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--trace", help="the conversation trace; without it that part is left out")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    figures = {}
    for tokens in (6144, 16384):
        workload = ["--workload", "hot", "--system_tokens", str(tokens), "--turns", "40"]
        title = f"50 agents, system prompt of {tokens:,} tokens"
        figures[title] = compare(options.program, title, workload, options.seeds, 50, 60)
    if options.trace:
        workload = ["--trace", options.trace, "--load", "0.7", "--jitter_ms", "20"]
        title = "conversation trace, utilisation 0.7"
        figures[title] = compare(options.program, title, workload, options.seeds, 600, 300)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
