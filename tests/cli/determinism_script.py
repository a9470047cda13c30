"""Runs `dyn` commands one after the other, for `test_determinism.py`.

Called as `python determinism_script.py UMASK SECONDS PLAN`. PLAN is a JSON list of command lines.
SECONDS is how long one call of a stepper aims to take: it changes the chunks in which a run is
trained, as a slower or busier machine does. Checkpoints are written after every chunk.
"""

import json
import os
import sys

from dynamics_cli.cli import main
from dynamics_cli.training import loop

if __name__ == "__main__":
    umask, seconds, plan = sys.argv[1:]
    os.umask(int(umask, 8))
    loop.CALL_SECONDS = float(seconds)
    loop.CHECKPOINT_SECONDS = -1.0
    for command in json.loads(plan):
        print(*command, file=sys.stderr)  # the last line before a traceback
        main(command, standalone_mode=False)
