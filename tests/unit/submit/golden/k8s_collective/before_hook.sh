#!/bin/sh
# Runs on every node before the job. Paddle (1.7.2 in backend.yaml) is not needed.
echo "Run before_hook.sh ..."

python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "error: clickmill needs Python 3.11 or newer as \`python\` on this node" >&2
    exit 1
}
python -m pip install 'clickmill[train]' || exit 1

python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || {
    echo "error: torch sees no card on this node" >&2
    exit 1
}

echo "End before_hook.sh ..."
