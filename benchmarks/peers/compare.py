#!/usr/bin/env python3
"""This library beside its peers: same workloads, same run, one core, ratios. See README.md beside this file.

Standard library only. Builds both sides, runs every workload of every contender as a process of its own, in turns and several
times, and prints one table. Also writes build/peers/result.json (every reading) and build/peers/table.md.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "build", "peers")
RESULT = os.path.join(OUT, "result.json")
EDITION_2024 = (1, 85)  # the first Rust that knows it; the peers' crates need it

INDEX = ["INGEST", "QUERY", "TREE", "CHURN"]
BYTES = ["INGEST", "TREE", "CHURN", "TEXT"]
OURS = "warmroute"
OURS_BY_PATH = "warmroute-path"
# column of the table -> contenders of whose readings the best counts
PEERS = {
    "Dynamo CRTC": ["dynamo-crtc", "dynamo"],
    "Dynamo RadixTree": ["dynamo-radix"],
    "SMG 1.7.0": ["smg-1.7.0", "smg-1.7.0-array"],
    "SMG 2.0.0": ["smg-2.0.0", "smg-2.0.0-array"],
}
# Readings that only describe a contender; the table leaves them out.
HIDDEN = {"digest", "delivery_per_block", "mean"}
# The clock of some virtual machines moves in steps of this. Calls of less than ten steps are compared by `mean`, read over many
# calls, instead of p50; and a p99 that differs by no more than a step is the same.
CLOCK_STEP_NS = 10


def say(text):
    print(text, flush=True)


def note(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def die(text):
    note(text)
    sys.exit(1)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# ---------------------------------------------------------------- building


def require_rust():
    needed = "the peers' crates need cargo and Rust {}.{} or newer (edition 2024)".format(*EDITION_2024)
    version = output_of("rustc", "--version")
    found = re.search(r"(\d+)\.(\d+)", version)
    if not found or not shutil.which("cargo"):
        die(f"{needed}; none is here. Install it (rustup, or the system's package if that is new enough) and run again.")
    if (int(found[1]), int(found[2])) < EDITION_2024:
        die(f"{needed}; this is {version}. Update it (rustup update) and run again.")


def run_build(command, log, env=None):
    with open(log, "w", encoding="utf-8") as sink:
        done = subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT, cwd=ROOT, env=env)
    if done.returncode != 0:
        with open(log, encoding="utf-8") as text:
            sys.stderr.write("".join(text.readlines()[-25:]))
        die(f"building failed, all of it is in {os.path.relpath(log, ROOT)}")


def build_ours():
    folder = os.path.join(OUT, "cmake")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        options = ["-DWARMROUTE_BUILD_TESTS=OFF", "-DWARMROUTE_BUILD_EXAMPLES=OFF", "-DWARMROUTE_BUILD_BENCHMARKS=ON"]
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        run_build(["cmake", "--preset", "release", "-B", folder, *options], os.path.join(OUT, "configure.log"))
    run_build(["cmake", "--build", folder, "--target", "peers_ours"], os.path.join(OUT, "ours.log"))


def build_theirs(selection, jobs):
    """Selection needs a feature of Dynamo's crate that adds counters to its index, so it is a build of its own."""
    command = ["cargo", "build", "--release", "--locked", "-j", str(jobs), "--manifest-path", os.path.join(HERE, "rust", "Cargo.toml")]
    if selection:
        command += ["--features", "selection"]
    env = dict(os.environ, CARGO_TARGET_DIR=target_folder(selection))
    run_build(command, os.path.join(OUT, "theirs.log"), env)


def target_folder(selection):
    return os.path.join(OUT, "target-selection" if selection else "target")


def ours_program():
    return os.path.join(OUT, "cmake", "benchmarks", "peers", "peers_ours")


def theirs_program(selection=False):
    return os.path.join(target_folder(selection), "release", "warmroute-peers")


# ---------------------------------------------------------------- running


def runs_of(selection, wanted):
    """returns: (contender, workload, program) of every run."""
    index = [c for c in (OURS, OURS_BY_PATH)] + ["dynamo-crtc", "dynamo-radix", "smg-1.7.0", "smg-1.7.0-array", "smg-2.0.0", "smg-2.0.0-array"]
    runs = []
    for workload in INDEX:
        runs += [(c, workload, ours_program() if c.startswith(OURS) else theirs_program()) for c in index]
    for workload, peers in (("TEXT", ["smg-2.0.0"]), ("HASH", ["dynamo", "smg-2.0.0"])):
        runs.append((OURS, workload, ours_program()))
        runs += [(c, workload, theirs_program()) for c in peers]
    if selection:
        runs += [(OURS, "SELECT", ours_program()), ("dynamo", "SELECT", theirs_program(True))]
    return [r for r in runs if r[1] in wanted]


def pinned(cpu):
    return ["taskset", "-c", str(cpu)] if shutil.which("taskset") else []


def run_one(contender, workload, program, mode, cpu):
    command = [*pinned(cpu), program, contender, workload, mode]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        note(f"{contender} {workload} {mode}: more than 15 minutes, left out")
        return []
    if done.returncode != 0:
        note(f"{contender} {workload} {mode}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(runs, repeat, cpu):
    """Every workload of all contenders in turns, in another order each time. returns: {(workload, args, metric): {contender: [values]}}, units."""
    readings, units = {}, {}
    workloads = list(dict.fromkeys(w for _, w, _ in runs))
    for turn in range(repeat):
        for workload in workloads:
            group = [r for r in runs if r[1] == workload]
            group = group[turn % len(group):] + group[: turn % len(group)]
            for contender, _, program in group:
                # bytes are the same each time
                modes = ["time"] + (["bytes"] if turn == 0 and workload in BYTES else [])
                for mode in modes:
                    note(f"{turn + 1}/{repeat} {workload} {mode} {contender}")
                    for line in run_one(contender, workload, program, mode, cpu):
                        key = (line["workload"], line["args"], line["metric"])
                        readings.setdefault(key, {}).setdefault(contender, []).append(line["value"])
                        units[key] = line["unit"]
    return readings, units


def check_digests(readings):
    for (workload, args, metric), by_contender in readings.items():
        if metric == "digest" and len({v for values in by_contender.values() for v in values}) > 1:
            die(f"{workload} {args}: the contenders did not run the same numbers: {by_contender}")


# ---------------------------------------------------------------- the table


def middle(values):
    return statistics.median(values) if values else None


def best_of(by_contender, contenders):
    found = [middle(by_contender[c]) for c in contenders if c in by_contender]
    return min(found) if found else None


def number(value):
    if value is None:
        return ""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.1f}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:.1f}k"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(ours, theirs):
    if ours is None or theirs is None:
        return None
    if theirs <= 0:
        return 1.0 if ours <= 0 else float("inf")
    return ours / theirs


def shown(r):
    return "" if r is None else ("inf" if r == float("inf") else f"{r:.3f}" if r < 0.0995 else f"{r:.2f}")


class Row:
    """One line of the table: a figure of this library and of each peer; p50 and p99 of the same calls share a line."""

    def __init__(self, workload, args, figure, unit):
        self.workload, self.args, self.figure, self.unit = workload, args, figure, unit
        self.step = CLOCK_STEP_NS if figure.endswith("p99") else 0
        self.ours, self.theirs = [], {peer: [] for peer in PEERS}

    def add(self, ours, theirs):
        self.ours.append(ours)
        for peer, value in theirs.items():
            self.theirs[peer].append(value)

    def ratios(self, peer):
        return [ratio(o, t) for o, t in zip(self.ours, self.theirs[peer])]

    def best_ratios(self):
        """To the best peer, of each number by itself."""
        found = []
        for i, ours in enumerate(self.ours):
            values = [v[i] for v in self.theirs.values() if v[i] is not None]
            found.append(ratio(ours, min(values)))
        return found

    def behind(self):
        def slower(i, theirs):
            return theirs is not None and self.ours[i] > theirs + (self.step if i == len(self.ours) - 1 else 0)

        return [p for p in PEERS if any(slower(i, v) for i, v in enumerate(self.theirs[p]))]


def rows_of(readings, units, ours, wanted=lambda metric: True):
    """p50 and p99 share a row; a p50 of less than ten steps of the clock gives way to the mean."""
    rows = {}
    for (workload, args, metric), by_contender in readings.items():
        if metric in HIDDEN or ours not in by_contender or not wanted(metric):
            continue
        mean = readings.get((workload, args, "mean"), {})
        short = ours in mean and middle(readings[(workload, args, "p50")][ours]) < 10 * CLOCK_STEP_NS
        if metric == "p50" and short:
            by_contender = mean
        theirs = {peer: best_of(by_contender, names) for peer, names in PEERS.items()}
        if all(v is None for v in theirs.values()):
            continue
        figure = metric.replace("_", " ")
        if metric in ("p50", "p99"):
            figure = "mean / p99" if short else "p50 / p99"
        row = rows.setdefault((workload, args, figure), Row(workload, args, figure, units[(workload, args, metric)]))
        row.add(middle(by_contender[ours]), theirs)
    return list(rows.values())


def cell(values, show):
    return " / ".join(show(v) for v in values) if any(v is not None for v in values) else ""


def table(rows):
    lines = ["| work | figure | ours | " + " | ".join(f"{p} | ratio" for p in PEERS) + " | ratio to the best |"]
    lines.append("|---|---|--:|" + "--:|--:|" * len(PEERS) + "--:|")
    for row in rows:
        cells = [cell(row.ours, number)]
        for peer in PEERS:
            cells += [cell(row.theirs[peer], number), cell(row.ratios(peer), shown)]
        figure = row.figure + (f", {row.unit}" if row.unit else "")
        lines.append(f"| {row.workload} {row.args} | {figure} | " + " | ".join(cells) + f" | **{cell(row.best_ratios(), shown)}** |")
    return lines


def path_table(readings, units):
    lines = []
    for (workload, args, metric), by_contender in readings.items():
        if metric.startswith(("cpu", "bytes")) and metric not in HIDDEN and {OURS, OURS_BY_PATH} <= by_contender.keys():
            figure = metric.replace("_", " ") + ", " + units[(workload, args, metric)]
            lines.append(f"| {workload} {args} | {figure} | {number(middle(by_contender[OURS]))} | {number(middle(by_contender[OURS_BY_PATH]))} |")
    return ["| ours, told | figure | by engines' names | by path |", "|---|---|--:|--:|", *lines] if lines else []


def verdict(rows):
    behind = [row for row in rows if row.behind()]
    lines = [f"Ahead of every peer on {len(rows) - len(behind)} of {len(rows)} lines (p50, p99 and bytes alike)."]
    if behind:
        lines += ["Behind on:", ""]
    for row in behind:
        against = "; ".join(f"{p} {cell(row.ratios(p), shown)}" for p in row.behind())
        lines.append(f"- {row.workload} {row.args}, {row.figure}: {against}")
    return lines


# ---------------------------------------------------------------- the machine


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as text:
            for line in text:
                if line.lower().startswith(("model name", "hardware")):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine(load_before, cpu, repeat):
    load_after = os.getloadavg()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": output_of("git", "describe", "--always", "--dirty"),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "compiler": output_of(os.environ.get("CXX", "c++"), "--version").splitlines()[:1],
        "rust": output_of("rustc", "--version"),
        "pinned_to_core": cpu,
        "repeats": repeat,
        "load_average": [round(load_before[0], 1), round(load_after[0], 1)],
    }


def describe(facts):
    text = (
        f"{facts['date']}, commit {facts['commit']}; {facts['cpu']}, {facts['cores']} cores, {facts['kernel']}; "
        f"{''.join(facts['compiler'])} -O3; {facts['rust']}, release with thin LTO; core {facts['pinned_to_core']}, "
        f"median of {facts['repeats']}; load average {facts['load_average'][0]} before, {facts['load_average'][1]} after"
    )
    if max(facts["load_average"]) > (facts["cores"] or 1) * 0.75:
        text += ". **The machine was busy with other work: caches were shared, and p99 says less than p50 and CPU time**"
    return text + "."


# ---------------------------------------------------------------- Python


def python_rows():
    """Dynamo's wheel in a virtual environment of its own. returns: readings, or none with the reason said."""
    venv = os.path.join(OUT, "venv")
    python = os.path.join(venv, "bin", "python")
    requirements = os.path.join(HERE, "python", "requirements.txt")
    script = os.path.join(HERE, "python", "radix_tree.py")
    try:
        if not os.path.exists(python):
            subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements], check=True,
                       capture_output=True, timeout=900)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", b"") or str(error).encode()
        note(f"Python peer skipped: ai-dynamo-runtime cannot be installed here ({reason.decode(errors='replace').strip()[-200:]})")
        return []
    note("Python: ai-dynamo-runtime")
    # not pinned: the wheel hands each look-up to a thread of its own
    done = subprocess.run([python, script], capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        note(f"Python peer skipped: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def python_table(lines):
    rows = {}
    for line in lines:
        rows.setdefault(f"{line['workload']} {line['args']}", []).append(line["value"] / 1e3)
    out = ["| ai-dynamo-runtime (Python) | p50 / p99, us |", "|---|--:|"]
    return out + [f"| {work} | {cell(values, number)} |" for work, values in rows.items()] if rows else []


# ----------------------------------------------------------------


def replace_between(path, begin, end, lines):
    with open(path, encoding="utf-8") as text:
        whole = text.read()
    if begin not in whole or end not in whole:
        die(f"{path} has no lines '{begin}' and '{end}' to write between")
    head, rest = whole.split(begin, 1)
    tail = rest.split(end, 1)[1]
    with open(path, "w", encoding="utf-8") as text:
        text.write(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail)


def keep(facts, readings, units, in_python):
    flat = [
        {"workload": w, "args": a, "metric": m, "unit": units[(w, a, m)], "contender": c, "values": v}
        for (w, a, m), by_contender in readings.items()
        for c, v in by_contender.items()
    ]
    with open(RESULT, "w", encoding="utf-8") as text:
        json.dump({"machine": facts, "readings": flat, "python": in_python}, text, indent=1)


def kept():
    with open(RESULT, encoding="utf-8") as text:
        whole = json.load(text)
    readings, units = {}, {}
    for r in whole["readings"]:
        key = (r["workload"], r["args"], r["metric"])
        readings.setdefault(key, {})[r["contender"]] = r["values"]
        units[key] = r["unit"]
    return whole["machine"], readings, units, whole["python"]


def present(facts, readings, units, in_python, readme):
    rows = rows_of(readings, units, OURS)
    # without the map from engine hashes: what a caller who feeds paths needs
    rows += rows_of(readings, units, OURS_BY_PATH, lambda metric: metric == "bytes_without_engine_map")
    lines = [describe(facts), "", *table(rows), "", *verdict(rows)]
    for more in (path_table(readings, units), python_table(in_python)):
        if more:
            lines += ["", *more]
    say("\n".join(lines))
    with open(os.path.join(OUT, "table.md"), "w", encoding="utf-8") as text:
        text.write("\n".join(lines) + "\n")
    if readme:
        replace_between(readme, "<!-- peers -->", "<!-- /peers -->", lines)
    note("written: build/peers/table.md, build/peers/result.json")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="times that everything is measured (default: 3)")
    parser.add_argument("--only", default="", help="workloads, comma-separated: INGEST,QUERY,TREE,CHURN,TEXT,HASH,SELECT")
    parser.add_argument("--selection", action="store_true", help="also Dynamo's worker selection (a second build of its crate)")
    parser.add_argument("--without-python", action="store_true", help="leave the Python wheel out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="for cargo")
    parser.add_argument("--show", action="store_true", help="measure nothing; show the last result again")
    parser.add_argument("--no-build", action="store_true", help="run what is built")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="core to run on (default: the last)")
    parser.add_argument("--readme", default="", help="also write the tables between the marks <!-- peers --> and <!-- /peers --> of this file")
    return parser.parse_args()


def main():
    options = arguments()
    os.makedirs(OUT, exist_ok=True)
    options.selection |= "SELECT" in options.only.upper()
    if options.show:
        present(*kept(), options.readme)
        return
    if not options.no_build:
        require_rust()
        note("building (the peers' crates take some minutes the first time)")
        build_ours()
        build_theirs(False, options.jobs)
        if options.selection:
            build_theirs(True, options.jobs)
    load_before = os.getloadavg()
    wanted = options.only.upper().split(",") if options.only else [*INDEX, "TEXT", "HASH", "SELECT"]
    readings, units = measure(runs_of(options.selection, wanted), options.repeat, options.cpu)
    check_digests(readings)
    in_python = [] if options.without_python or options.only else python_rows()
    facts = machine(load_before, options.cpu, options.repeat)

    keep(facts, readings, units, in_python)
    present(facts, readings, units, in_python, options.readme)


if __name__ == "__main__":
    main()
