"""Last lines of the demo: what the runs in a folder show, and whether that is what the README claims."""
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])


def run(label):
    return json.loads((folder / f"{label}.json").read_text())


def line(holds, text):
    print(f"{'yes' if holds else 'NO ':3} {text}")
    return holds


robin, sticky, ours = run("round_robin"), run("sticky"), run("warmroute")
agents = [run("agents_round_robin"), run("agents_warmroute")]
# A build without ZeroMQ has no runs with events.
events = run("warmroute_events") if (folder / "warmroute_events.json").exists() else None
with_events = [events, run("agents_events")] if events else []

ttft = ours["ttft_ms"]["mean"] / robin["ttft_ms"]["mean"]
hits = ours["hit_ratio"] / sticky["hit_ratio"] if sticky["hit_ratio"] else float("inf")
everything = [robin, sticky, ours, *agents, *with_events]
requests = sum(r["requests"] for r in everything)
completed = sum(r["completed"] for r in everything)
failed = sum(sum(r["errors"].values()) for r in everything)

fine = [
    line(ttft <= 0.5, f"mean TTFT is {ttft:.2f} of round robin's (at most 0.50): "
         f"{ours['ttft_ms']['mean']:.0f} against {robin['ttft_ms']['mean']:.0f} ms"),
    line(hits >= 0.85, f"cached tokens are {hits:.2f} of what sticky hashing reaches (at least 0.85): "
         f"{100 * ours['hit_ratio']:.1f} against {100 * sticky['hit_ratio']:.1f} %"),
    line(completed == requests and failed == 0, f"nothing failed, nothing was lost: {completed} of {requests} answered, "
         f"{failed} errors"),
]
for name, r in [("without events", ours), ("with events", events)]:
    if r and r["foresight"]["requests"]:
        f = r["foresight"]
        print(f"    {name}: cached tokens foreseen exactly for {100 * f['exact'] / f['requests']:.1f} % of requests; off by "
              f"{100 * f['off_tokens'] / max(1, f['cached_tokens']):.2f} % of all cached tokens")
sys.exit(0 if all(fine) else 1)
