"""`python -m tests.fuzz.run ROOM COUNT [--seed N] [--first N]`: fuzz as long as you like, and count what came out."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.cage import Report, run_cases
from tests.fuzz.rooms import ROOMS

PIECE = 1000
"""Cases between two lines on stderr."""


def main() -> int:
    """Return 1 when a case did what should not be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=[*ROOMS, "all"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    failed = False
    for room in ROOMS if chosen.room == "all" else [chosen.room]:
        report, began, told = Report(), time.monotonic(), 0
        with tempfile.TemporaryDirectory(prefix="dyn-fuzz-") as place:
            for first in range(chosen.first, chosen.first + chosen.count, PIECE):
                count = min(PIECE, chosen.first + chosen.count - first)
                run_cases(room, chosen.seed, count, Path(place), first=first, report=report)
                print(f"{room}: {first + count - chosen.first} of {chosen.count}", file=sys.stderr, flush=True)
                for failure in report.failures[told:]:
                    print(failure, flush=True)
                told = len(report.failures)
        print(f"{room}: {chosen.count} cases of seed {chosen.seed} in {time.monotonic() - began:.0f} s")
        for outcome, count in report.outcomes.most_common():
            print(f"  {count:8d}  {outcome}")
        print(f"  slowest case {report.slowest:.2f} s of CPU, peak memory grew by {report.growth / 2**20:.0f} MiB")
        failed = failed or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
