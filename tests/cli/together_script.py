"""Many `dyn` commands at once, for `test_two_at_once.py`: `python together_script.py COUNT[xROUNDS] ARGUMENTS...`.

A warm parent forks COUNT children, which begin together; each appends to `<k>.err` in the working directory. After a
`+` follows another command, for as many children more. After the first round, each begins within a tenth of a second,
at random. Prints the exit codes as a JSON list.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.training.session import obtain_run, plan_run


def child(k: int, arguments: list[str], start: int, delay: float) -> None:
    """Wait for the start, which is the closing of a pipe, and run the command."""
    os.read(start, 1)
    time.sleep(delay)
    log = os.open(f"{k}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        main(arguments)
    except SystemExit as done:
        sys.stderr.flush()
        os._exit(int(done.code or 0))
    os._exit(1)


def begin(commands: list[list[str]], delays: list[float]) -> list[int]:
    """Fork a child for each command, start them at the same moment, and return their process ids."""
    start, ready = os.pipe()
    children = []
    for k, (arguments, delay) in enumerate(zip(commands, delays, strict=True)):
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            child(k, arguments, start, delay)
        children.append(pid)
    os.close(start)
    os.close(ready)
    return children


def run(count: int, rounds: int, arguments: list[str]) -> list[int]:
    """Run the commands and return the exit codes, round by round."""
    commands: list[list[str]] = [[]]
    for word in arguments:
        if word == "+":
            commands.append([])
        else:
            commands[-1].append(word)
    each = [command for command in commands for _ in range(count)]
    codes: list[int] = []
    rng = random.Random(0)
    for k in range(rounds):
        children = begin(each, [0.1 * rng.random() * (k > 0) for _ in each])
        codes += [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    return codes


if __name__ == "__main__":
    config = load_config("toy.yaml", ["optimizer.iterations=5"])  # compiles, and imports, what there is to compile
    obtain_run(plan_run(config, Path("warm")))
    number, _, times = sys.argv[1].partition("x")
    print(json.dumps(run(int(number), int(times or 1), sys.argv[2:])))
