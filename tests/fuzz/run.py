"""`python -m tests.fuzz.run ROOM COUNT [--seed N]`: fuzz as long as you like, and count the answers."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.fuzz.rooms import ROOMS, attack, opened


def main() -> None:
    """Attack a room, or all; the first case that does what should not be is made small, shown, and ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", choices=[*ROOMS, "all"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for name in ROOMS if chosen.room == "all" else [chosen.room]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dyn-fuzz-") as place, opened(name, Path(place)) as room:
            answers = attack(room, chosen.count, chosen.seed)
        print(f"{name}: {answers.total()} cases of seed {chosen.seed} in {time.monotonic() - began:.0f} s")
        for answer, count in answers.most_common():
            print(f"  {count:8d}  {answer}")


if __name__ == "__main__":
    main()
