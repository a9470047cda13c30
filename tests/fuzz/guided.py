"""Coverage-guided fuzzing, for whoever has atheris: `python -m tests.fuzz.guided ROOM [options of libFuzzer]`.

Atheris is no dependency of the project: `pip install atheris` into an environment of your own that can import it.
Rooms whose cases are the bytes of a file can be fuzzed in this way: configs, tables, arrays.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOMS = ("configs", "tables", "arrays")


def main(name: str, options: list[str]) -> None:
    """Fuzz until a case does what should not be, or the options say stop."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["dynamics_cli.config", "dynamics_cli.datasets", "yaml"]):
        room: Any = importlib.import_module(f"tests.fuzz.{name}").Room()
    place = Path(tempfile.mkdtemp(prefix="dyn-guided-"))
    os.environ.update(DYN_OUTPUTS=str(place / "outputs"), DYN_DATA=str(place / "data"))
    room.prepare(place)
    corpus = place / "corpus"
    corpus.mkdir()
    for i in range(50):
        case = room.case(0, i + 2000)
        (corpus / str(i)).write_bytes(case if isinstance(case, bytes) else case.data)

    def one(data: bytes) -> None:
        if name == "configs":
            from tests.fuzz.configs import Case

            room.run(Case("guided", data=data))
        else:
            room.run(data)

    atheris.Setup([sys.argv[0], str(corpus), "-timeout=10", "-rss_limit_mb=2000", *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ROOMS:
        sys.exit(
            f"usage: python -m tests.fuzz.guided {'|'.join(ROOMS)} [options of libFuzzer, e.g. -max_total_time=60]"
        )
    main(sys.argv[1], sys.argv[2:])
