#!/usr/bin/env bash
# A plan of six tasks on three workers with the engine's development server, all on this machine.
set -euo pipefail
directory=$(mktemp -d)
port=$((20000 + RANDOM % 20000))
url=temporal://127.0.0.1:$port/default
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$directory"' EXIT
for program in ralph ralph-fleet temporal git; do
    command -v "$program" >/dev/null || { echo "missing: $program"; exit 2; }
done

temporal server start-dev --headless --port "$port" --log-level error >"$directory/engine.log" 2>&1 &
pids+=($!)
until temporal operator cluster health --address "127.0.0.1:$port" 2>/dev/null | grep -q SERVING; do sleep 0.2; done
sleep 1

git init --quiet --bare "$directory/hub.git"
git init --quiet -b main "$directory/project"
cd "$directory/project"
cat >agent.sh <<'AGENT'
#!/bin/sh
# Writes one file for each task; says that it is done in the second iteration.
echo "iteration $RALPH_ITERATION" >>"$RALPH_RUN_ID.txt"
sleep 2
echo "wrote $RALPH_RUN_ID.txt"
[ "$RALPH_ITERATION" -lt 2 ] || echo LOOP_COMPLETE
AGENT
chmod +x agent.sh
printf 'gates:\n  - {name: files, run: "ls *.txt"}\n' >ralph.yml
for task in one two three four five six; do echo "- [ ] Write the file of task $task"; done >plan.md
git add . && git -c user.name=you -c user.email=you@example.org commit --quiet -m "a project"
git remote add origin "$directory/hub.git" && git push --quiet origin main

for worker in 1 2 3; do
    ralph worker --engine "$url" --name "worker-$worker" --root "$directory/worker-$worker" 2>/dev/null &
    pids+=($!)
done
ralph plan run plan.md --engine "$url" --agent-cmd ./agent.sh --detach
ralph plan status plan --engine "$url" --watch
git fetch --quiet origin ralph/plan && git log --oneline FETCH_HEAD
