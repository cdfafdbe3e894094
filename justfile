# `just` lists what there is.

# Folder of a conformance kit (run.py and its scenarios), which is not part of this repository.
kit := env_var_or_default("WAXLOG_CONFORMANCE_KIT", "")
# A script that drives an agent through long turns: see docs/benchmarks.md. Not part of this repository.
turn_bench := env_var_or_default("WAXLOG_TURN_BENCH", "")

# List the recipes.
default:
    @just --list

# Run all tests.
test:
    cargo test --workspace

# Clippy on everything; a warning is an error.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Format all crates.
fmt:
    cargo fmt --all

# Replay every recorded fixture.
fixtures:
    cargo run --quiet -- fixture run fixtures/*.jsonl

# Drive simulated sessions through faults, a seed each; `just sim --seed N --trace` shows one.
sim *options="--seeds 10000":
    cargo run --quiet --package waxlog-sim -- {{options}}

# Run each fuzz target over its corpus and mutations of it for some seconds.
fuzz seconds="5" *options:
    cargo run --quiet --package waxlog-sim -- fuzz --seconds {{seconds}} {{options}}

# Criterion benches: append and flush, opening, fold, replay.
bench:
    cargo bench --package waxlog-store --bench append_flush
    cargo bench --package waxlog-core

# Turns of 50, 200 and 800 rounds; needs WAXLOG_TURN_BENCH.
bench-turns:
    @test -n "{{turn_bench}}" || { echo "set WAXLOG_TURN_BENCH to the turn bench script" >&2; exit 2; }
    cargo build --release
    for rounds in 50 200 800; do python3 "{{turn_bench}}" --agent '{{justfile_directory()}}/target/release/waxlog agent' --rounds $rounds --runs 3; done

# Scenarios of a conformance kit, all or those named; needs WAXLOG_CONFORMANCE_KIT.
conformance *names:
    @test -n "{{kit}}" || { echo "set WAXLOG_CONFORMANCE_KIT to the kit's folder" >&2; exit 2; }
    cargo build
    python3 "{{kit}}/run.py" --agent '{{justfile_directory()}}/target/debug/waxlog agent' {{names}}

# Scenarios of a conformance kit for the tool server, all or those named; needs WAXLOG_CONFORMANCE_KIT.
conformance-tools *names:
    @test -n "{{kit}}" || { echo "set WAXLOG_CONFORMANCE_KIT to the kit's folder" >&2; exit 2; }
    cargo build
    python3 "{{kit}}/tools_run.py" --server '{{justfile_directory()}}/target/debug/waxlog mcp' {{names}}

# Scenarios of a conformance kit for the harness, all or those named; needs WAXLOG_CONFORMANCE_KIT.
conformance-harness *names:
    @test -n "{{kit}}" || { echo "set WAXLOG_CONFORMANCE_KIT to the kit's folder" >&2; exit 2; }
    cargo build
    python3 "{{kit}}/harness_run.py" --harness '{{justfile_directory()}}/target/debug/waxlog acp' {{names}}

# Scenarios of a conformance kit for the commands and the relay; needs WAXLOG_CONFORMANCE_KIT.
conformance-commands *names:
    @test -n "{{kit}}" || { echo "set WAXLOG_CONFORMANCE_KIT to the kit's folder" >&2; exit 2; }
    cargo build
    python3 "{{kit}}/cli_run.py" --cli '{{justfile_directory()}}/target/debug/waxlog' --relay '{{justfile_directory()}}/target/debug/waxlog relay --listen 127.0.0.1:{port}' {{names}}

# Bans, licences and sources of all dependencies; needs cargo-deny.
deny:
    cargo deny check bans licenses sources

# What CI runs.
ci:
    .ci/run
