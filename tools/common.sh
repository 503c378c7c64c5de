# shellcheck shell=bash
# For the scripts of this folder, to be sourced: where things are, phases, logs, and failing with a sentence.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${0##*/}
logs=$root/build/logs
export LC_ALL=C.UTF-8
cd "$root"

phase() { printf '==> %s\n' "$*"; }
skipped() { printf 'skipped: %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$program" "$*" >&2
  exit 1
}

# logged LOG SENTENCE COMMAND...: runs COMMAND with its output in build/logs/LOG.log; SENTENCE says what failed.
logged() {
  local log=$logs/$1.log sentence=$2 start=$SECONDS
  shift 2
  mkdir -p "$logs"
  "$@" >"$log" 2>&1 </dev/null || fail "$sentence; the log is ${log#"$root"/}"
  printf '    done in %d s\n' $((SECONDS - start))
}

# As many compilers as there are cores, and about 1.5 GiB of free memory for each.
parallel_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  ((memory >= 1)) || memory=1
  echo $((cores < memory ? cores : memory))
}

# build PRESET "TARGET..." [CMAKE ARGUMENT...]: configures build/PRESET and builds the targets there.
build() {
  local name=$1 targets
  read -r -a targets <<<"$2"
  shift 2
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  phase "configuring build/$name"
  logged "$name-configure" "CMake could not configure build/$name" cmake --preset "$name" "$@"
  phase "building build/$name with $(parallel_jobs) jobs (minutes the first time)"
  logged "$name-build" "build/$name does not compile" \
    cmake --build "build/$name" -j "$(parallel_jobs)" --target "${targets[@]}"
}

# ctest_in FOLDER [CTEST ARGUMENT...]: runs the tests of build/FOLDER; names those that fail.
ctest_in() {
  local name=$1 log=$logs/$1-ctest.log
  shift
  phase "testing build/$name"
  if ! ctest --test-dir "build/$name" --output-on-failure --no-tests=error -j "$(nproc)" "$@" \
    >"$log" 2>&1 </dev/null; then
    local failed
    failed=$(sed -n '/^The following tests FAILED:/,$ s/^[\t ]*[0-9]* - \(.*\) (.*)$/  \1/p' "$log" | head -n 20)
    fail "tests fail in build/$name; the log is ${log#"$root"/}"$'\n'"${failed:-  ctest itself}"
  fi
  awk '/tests passed/ || /\(Skipped\)$/ || /^Total Test time/ { print "    " $0 }' "$log"
}

# report_page PRESET: builds the page of the HTML reports where npm is and reaches its registry; else says why not.
report_page() {
  local log=$logs/$1-report.log
  if ! command -v npm >/dev/null; then
    skipped "the page of the HTML reports, for want of npm (./tools/setup report)"
    return
  fi
  phase "building the page of the HTML reports"
  mkdir -p "$logs"
  cmake --build "build/$1" --target report >"$log" 2>&1 </dev/null && return
  [[ ! -f build/$1/tools/report/npm/installed ]] || fail "the page of the HTML reports does not build; the log is ${log#"$root"/}"
  skipped "the page of the HTML reports: npm could not install its modules; the log is ${log#"$root"/}"
}
