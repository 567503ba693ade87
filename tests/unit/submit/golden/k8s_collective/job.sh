#!/bin/sh
# Submits what lies in this folder to PaddleCloud. Change it as you like and run `sh job.sh` again.
cd "$(dirname "$0")" || exit 1

job_name=PaddleRec_CTR
group_name=mine
job_version=paddle-fluid-v1.7.1
start_cmd='python -m clickmill.run -m ./config.yaml'
wall_time=2000:00:00

# Keys are in the environment, or in a file that only you can read and that is not uploaded.
if [ -r ./.credentials ]; then . ./.credentials; fi
trimmed() { printf '%s' "$1" | sed 's/^[[:space:]]*//; s/[[:space:]]*$//'; }
told="$(trimmed "${CLICKMILL_AK:-}")"
ak="${told:-${ak:-}}"
told="$(trimmed "${CLICKMILL_SK:-}")"
sk="${told:-${sk:-}}"
if [ -z "${ak}" ] || [ -z "${sk}" ]; then
    echo "error: no keys; set CLICKMILL_AK and CLICKMILL_SK" >&2
    exit 2
fi

# The platform is reached directly.
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY

paddlecloud job --ak "${ak}" --sk "${sk}" \
    train \
    --job-name "${job_name}" \
    --group-name "${group_name}" \
    --job-version "${job_version}" \
    --job-conf config.ini \
    --start-cmd "${start_cmd}" \
    --files ./* \
    --k8s-priority high \
    --wall-time "${wall_time}" \
    --k8s-trainers 2 \
    --k8s-cpu-cores 4 \
    --k8s-gpu-cards 1 \
    --is-standalone 0 \
    --distribute-job-type NCCL2 \
    --json
