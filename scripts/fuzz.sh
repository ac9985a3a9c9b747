#!/bin/sh
# Looks for hostile input: each target of tests/hostile, or those that are named, under a coverage-guided
# fuzzer for FUZZ_SECONDS each (60). Begins with the corpora in fuzz/corpus and with what earlier runs
# found new (target/fuzz/corpus). Fails at the first input that breaks a promise, takes ten seconds or
# makes the process larger than a gigabyte, and says where it is.
#
# Works with a stable toolchain: without a sanitizer, libFuzzer needs nothing else. It needs a C++
# compiler besides, since libFuzzer is written in C++.
set -eu
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
found=$PWD/target/fuzz/found
fresh=$PWD/target/fuzz/corpus

if ! command -v c++ >/dev/null; then
    echo 'fuzz: no C++ compiler (c++): libFuzzer cannot be built; install one, such as g++' >&2
    exit 1
fi
fuzz=$(sh scripts/tool.sh cargo-fuzz)
# As the profile of fuzz/Cargo.toml says, with debug assertions.
"$fuzz" fuzz build --release --fuzz-dir fuzz --sanitizer none \
    --target-dir target/fuzz

programs=target/fuzz/$(rustc -vV | sed -n 's/^host: //p')/release
targets=${*:-$(ls fuzz/corpus)}
for target in $targets; do
    mkdir -p "$fresh/$target" "$found/$target"
    log=target/fuzz/$target.log
    # Properties are judged by their size, too: up to the largest that brokers pass on.
    case $target in headers) longest=131072 ;; *) longest=16384 ;; esac
    if ! "$programs/$target" "$fresh/$target" "fuzz/corpus/$target" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len="$longest" \
        -artifact_prefix="$found/$target/" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz: $target breaks a promise. The input is in $found/$target; when the reader is" \
            "mended, put it into fuzz/corpus/$target, where \`make test\` replays it." >&2
        exit 1
    fi
    grep -a DONE "$log" | sed "s/^#\([0-9]*\).*cov: \([0-9]*\).*corp: \([0-9]*\).*/\
$target: \1 inputs, \2 places reached, \3 inputs that reach something new/"
done
