#!/usr/bin/env bash
# A limit for a program: one that hangs fails and shows where it stands.
#
#   tests/within.sh SECONDS COMMAND [ARGUMENT ...]
#
# Runs the command and exits as it does. Past the limit the stacks of all its threads go to standard error, where gdb is
# installed, and the command is ended by SIGABRT, at which valgrind shows its own stacks.
set -uo pipefail

limit=$1
shift

watch() {
  local pause=
  trap 'kill "$pause" 2>/dev/null; exit' TERM
  sleep "$limit" >/dev/null 2>&1 &
  pause=$!
  wait "$pause"
  printf 'not done after %s s: %s\n' "$limit" "$*"
  if command -v gdb >/dev/null; then
    timeout 60 gdb -p "$child" -batch -ex 'thread apply all backtrace' 2>&1 | grep -E '^(Thread|#)'
  else
    printf 'install gdb to see its stacks here\n'
  fi
  kill -ABRT "$child"
  sleep 2
  kill -KILL "$child" 2>/dev/null
}

"$@" &
child=$!
watch "$@" >&2 &
watcher=$!
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
