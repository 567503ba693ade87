#!/bin/sh
# Runs on every node after the job.
echo "Run end_hook.sh ..."
