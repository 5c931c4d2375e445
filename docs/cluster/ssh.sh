#!/usr/bin/env bash
# A Dask cluster over ssh: one worker per GPU, on machines that share the course's folder. Ctrl-C ends all of it.
#
#     docs/cluster/ssh.sh scheduler.example.org gpu1:0 gpu1:1 gpu2:0
#
# The first name is this machine's, as the others reach it; then host:GPU. "cpu1:" is a worker without a GPU.
set -euo pipefail
here=$1 port=${PORT:-8786} threads=${THREADS:-8} activate=${ACTIVATE:-"source ~/triton-course/.venv/bin/activate"}
shift
trap 'kill $(jobs -p) 2>/dev/null' EXIT
dask scheduler --host "$here" --port "$port" &
for place in "$@"; do
    host=${place%%:*} gpu=${place#*:}
    worker="CUDA_VISIBLE_DEVICES=$gpu dask worker tcp://$here:$port --nthreads $threads"
    [ -z "$gpu" ] || worker+=" --resources GPU=$threads"
    ${SSH:-ssh -tt} "$host" "$activate && $worker" </dev/null &
done
echo "course grade --isolation strict --scheduler tcp://$here:$port"
wait
