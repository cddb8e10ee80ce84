#!/usr/bin/env bash
# The demo: four simulated model servers, the gateway, and requests of a real trace, once per policy, each time with empty
# caches; then fifty agents behind one system prompt. ./dev demo builds the programs and calls this.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root"

binaries=${WARMROUTE_DEMO_BINARIES:-build/release}
out=build/demo
trace=benchmarks/data/mooncake_conversation_1200.jsonl
profile=70b-8xh100
capacity_tokens=1254400  # KV cache of one such server, which its operator knows (vLLM prints it at start)
replicas=4
load=0.8
requests=1200
time_scale=8
agents=50
turns=5
keep=0

usage() {
  cat <<END
usage: ./dev demo [--engine toy] [--requests N] [--load X] [--time-scale X] [--agents N] [--turns N] [--keep]

Starts $replicas simulated model servers ($profile) and the gateway on free ports of the loopback, sends the first N requests
of a public conversation trace through it (default $requests, at the rate at which prefill without caches would keep the
servers busy $load of the time), with the policies round_robin, consistent_hash (sticky on the first 1,024 tokens) and
cost (warmroute's own; without the servers' KV events, and with them), each time with empty caches. Then $agents agents that share one
system prompt, round_robin against cost without and with events.
All times are simulated ones; --time-scale says how many simulated seconds pass in a real one (default $time_scale; more
than the machine can follow makes every policy look slow).
--engine llama runs another demo, with real model servers: ./dev demo --engine llama --help.
  --keep  leave servers and gateway of the last run up, and say how to talk to them

Results lie in $out: a JSON file per run, logs, plot.svg. All processes are ended on every way out.
END
}

# shellcheck source=scripts/demo_common.sh
source scripts/demo_common.sh

if [[ ${1:-} == --engine ]]; then
  case ${2:-} in
    toy) shift 2 ;;
    llama)
      shift 2
      exec scripts/demo_llama.sh "$@"
      ;;
    *) die "--engine is neither toy nor llama" ;;
  esac
fi
while (($#)); do
  case $1 in
    --requests | --load | --time-scale | --agents | --turns)
      [[ $# -ge 2 && $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "$1 needs a number"
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2"
      shift
      ;;
    --keep) keep=1 ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown option '$1'; see ./dev demo --help" ;;
  esac
  shift
done

# start_fleet <policy>: fresh servers with empty caches behind a fresh gateway; sets `url`. With `events` set, the servers publish what
# their caches hold, and the gateway listens.
url=
events=
start_fleet() {
  local policy=$1 i flags=() publish=() listen='' replay_at events_at
  for ((i = 0; i < replicas; ++i)); do
    if [[ -n $events ]]; then publish=(--events tcp://127.0.0.1:0 --events-replay tcp://127.0.0.1:0); fi
    start "$out/engine-$i.log" "$binaries/examples/engine/warmroute-engine" --port 0 --name "gpu-$i" \
      --profile "$profile" --time-scale "$time_scale" "${publish[@]}"
    if [[ -n $events ]]; then
      events_at=$(sed -n 's/^events on \([^,]*\), replay on .*/\1/p' "$out/engine-$i.log")
      replay_at=$(sed -n 's/^events on .*, replay on \(.*\)/\1/p' "$out/engine-$i.log")
      listen=",events=$events_at,replay=$replay_at"
    fi
    flags+=(--replica "gpu-$i=127.0.0.1:$port$listen")
  done
  start "$out/gateway-$policy${events:+-events}.log" "$binaries/examples/gateway/warmroute-gateway" --port 0 "${flags[@]}" --policy "$policy" \
    --tokenizer toy --profile "$profile" --time-scale "$time_scale" --capacity-tokens "$capacity_tokens"
  url=http://127.0.0.1:$port
}

# replay <label> <policy> <flags...>: one run, its figures in $out/<label>.json.
replay() {
  local label=$1 policy=$2
  shift 2
  stop_all
  start_fleet "$policy"
  say ""
  say "== $label"
  run_replay "$label" --url "$url" --time-scale "$time_scale" --replicas "$replicas" --profile "$profile" "$@"
}

# ---------------------------------------------------------------- the runs

for program in examples/engine/warmroute-engine examples/gateway/warmroute-gateway benchmarks/replay/warmroute-replay; do
  [[ -x $binaries/$program ]] || die "$binaries/$program is not there; ./dev demo builds it"
done
[[ -f $trace ]] || die "$trace is missing from this checkout"
rm -rf "$out"
mkdir -p "$out"

say "$requests requests of a conversation trace, load $load of what $replicas x $profile prefill without caches, time x$time_scale"
started=$SECONDS
trace_flags=(--trace "$trace" --limit "$requests" --load "$load")
replay round_robin round_robin "${trace_flags[@]}"
replay sticky consistent_hash "${trace_flags[@]}"
replay warmroute cost "${trace_flags[@]}"
with_events=()
if [[ -e $binaries/lib/libwarmroute_zmq.a ]]; then
  with_events=(warmroute_events)
  events=1 replay warmroute_events cost "${trace_flags[@]}"
else
  say "no run with KV events: $binaries was built without ZeroMQ"
fi
agent_flags=(--scenario agents --agents "$agents" --turns "$turns")
replay agents_round_robin round_robin "${agent_flags[@]}"
replay agents_warmroute cost "${agent_flags[@]}"
if ((${#with_events[@]} > 0)); then events=1 replay agents_events cost "${agent_flags[@]}"; fi

say ""
say "== The trace (simulated time)"
compare "$out/plot.svg" round_robin sticky warmroute "${with_events[@]}"
say ""
say "== $agents agents behind one system prompt (simulated time)"
compare "$out/agents.svg" agents_round_robin agents_warmroute "${with_events[@]/warmroute/agents}"
say ""
python3 scripts/demo_summary.py "$out" || lost=1
say "took $((SECONDS - started)) s; figures, logs and plots: $root/$out"
say "plot: $root/$out/plot.svg"

if ((keep == 1)); then
  say ""
  say "Still up until you press Ctrl-C (policy cost, model toy-70b), for example:"
  say "  curl -s $url/v1/chat/completions -H 'content-type: application/json' \\"
  say "    -d '{\"model\":\"toy-70b\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'"
  say "  curl -s $url/metrics"
  wait
fi
exit "$lost"
