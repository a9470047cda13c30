"""Many `dyn` commands at once, for `test_two_at_once.py`: `python together_script.py COUNT
ARGUMENTS...`.

A warm parent forks COUNT children, which begin together; each writes to `<k>.err` in the working
directory. Prints the exit codes as a JSON list.
"""

import json
import os
import sys
from pathlib import Path

from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.training.session import obtain_run, plan_run


def child(k, arguments, start):
    """Wait for the start, which is the closing of a pipe, and run the command."""
    os.read(start, 1)
    log = os.open(f"{k}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        main(arguments)
    except SystemExit as done:
        sys.stderr.flush()
        os._exit(int(done.code or 0))
    os._exit(1)


def run(count, arguments):
    """Fork `count` children, which begin at the same moment, and return their exit codes."""
    start, ready = os.pipe()
    children = []
    for k in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            child(k, arguments, start)
        children.append(pid)
    os.close(start)
    os.close(ready)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


if __name__ == "__main__":
    config = load_config(
        "toy.yaml", ["optimizer.iterations=5"]
    )  # compiles, and imports, what there is to compile
    obtain_run(plan_run(config, Path("warm")))
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2:])))
