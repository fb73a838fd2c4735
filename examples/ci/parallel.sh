#!/bin/sh
# parallel.sh - the gate over the machines of a GNU parallel login file: parallel.sh LOGINS BASE HEAD
#
# LOGINS has a line for each machine, such as `1/bench@one.example` (one job at a time: two would disturb each other);
# `1/:` is this machine. BASE and HEAD are relative names here: they are sent to each machine, and its samples come back.
set -eu
logins=$1 base=$2 head=$3
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/shard.sh" ./shard.sh
trap 'rm -f shard.sh' EXIT
shards=$(seq "$(grep -c . "$logins")")
# shellcheck disable=SC2086 # a word for each machine
parallel --sshloginfile "$logins" --env MEW --env MEW_GATE_FLAGS --transferfile ./shard.sh --transferfile "./$base" \
	--transferfile "./$head" --return gate-{} --cleanup sh ./shard.sh measure {} "./$base" "./$head" ::: $shards
sh ./shard.sh join
