# What the demos have in common: processes that are ended on every way out, and the table of several runs. Sourced, from the repository's root;
# wants `binaries` and `out`.

say() { printf '%s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# ---------------------------------------------------------------- processes

pids=()
stop_all() {
  local pid i
  ((${#pids[@]} > 0)) || return 0
  kill -TERM "${pids[@]}" 2>/dev/null || true
  for i in {1..50}; do
    for pid in "${pids[@]}"; do
      if kill -0 "$pid" 2>/dev/null; then sleep 0.1; continue 2; fi
    done
    break
  done
  kill -KILL "${pids[@]}" 2>/dev/null || true
  wait "${pids[@]}" 2>/dev/null || true
  pids=()
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start <log> <program> <arguments...>: returns when it listens; sets `port`.
port=
start() {
  local log=$1 i
  shift
  : >"$log"
  "$@" >>"$log" 2>&1 &
  pids+=($!)
  for i in {1..100}; do
    port=$(sed -n 's/^warmroute-[a-z]* .*on [0-9.]*:\([0-9]*\)[, ].*/\1/p' "$log" | head -n 1)
    if [[ -n $port ]]; then return 0; fi
    if ! kill -0 "${pids[-1]}" 2>/dev/null; then break; fi
    sleep 0.05
  done
  cat "$log" >&2
  die "${1##*/} did not start, see above"
}

# run_replay <label> <replay's arguments...>: its figures in $out/<label>.json; `lost` is 1 when some requests were not answered.
lost=0
run_replay() {
  local label=$1 status=0
  shift
  # In the background: while it waits for a program in the foreground, the shell does not act on signals.
  "$binaries/benchmarks/replay/warmroute-replay" --label "$label" --json "$out/$label.json" "$@" >"$out/$label.txt" &
  pids+=($!)
  wait "${pids[-1]}" || status=$?
  if ((status > 1)); then
    cat "$out/$label.txt"
    die "the run '$label' ended with status $status; logs are in $root/$out"
  fi
  if ((status == 1)); then lost=1; fi
}

compare() {
  local svg=$1 files=() label
  shift
  for label in "$@"; do files+=("$out/$label.json"); done
  "$binaries/benchmarks/replay/warmroute-replay" --compare --svg "$svg" "${files[@]}"
}
