"""The command line: `dyn`.

Each command is one module that parses, calls a function of `api`, and prints; only the shell calls
this room. Begin with `groups`, which takes the help texts from `api`, and `train`; `guard` turns
errors into exit codes. Modules load when their command is asked for, and heavy libraries (torch,
matplotlib, numpy, pydantic) only inside the command bodies, so that `dyn --help` answers at once.
"""

from __future__ import annotations

import atexit
import gc
import os

import click

from dynamics_cli.cli.arguments import NamedPath
from dynamics_cli.cli.groups import RootGroup
from dynamics_cli.version import __version__

GROUPS = {
    "Run": ("train", "sweep", "reproduce", "audit"),
    "Look": ("plot", "page", "show", "compare", "list", "explain"),
    "Keep": ("verify", "export", "data"),
    "Write": ("new", "config"),
}
"""Headings of `dyn --help`, and the commands below each."""

COMMANDS = {name: f"dynamics_cli.cli.{name}:{name}" for names in GROUPS.values() for name in names}
COMMANDS["list"] = "dynamics_cli.cli.listing:list_"
"""Name of a command -> `module:attribute`."""

EXAMPLES = """\b
Examples:
  dyn reproduce boursier2022-fig2
  dyn train boursier2022/orthogonal --set architecture.width=200
  dyn plot boursier2022-orthogonal --panel loss

\b
Exit codes:
  0 well, 1 a bug, 2 usage, 3 bad config or input, 4 data missing,
  5 a claim not reproduced (--strict), 6 some jobs or figures failed,
  7 the run could not go on, 130, 138 and 143 interrupted with the state saved
"""


@click.group(
    "dyn",
    cls=RootGroup,
    table=COMMANDS,
    groups=GROUPS,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="dyn", message="%(prog)s %(version)s")
@click.option(
    "--with",
    "parts",
    multiple=True,
    type=NamedPath(),
    metavar="PATH",
    help="Code of your own: a file of kinds or the folder of a paper; repeatable.",
)
def main(parts: tuple[str, ...]) -> None:
    """Train, plot and reproduce experiments on the learning dynamics of neural networks."""
    # Imports leave no garbage: looking for it takes a third of a second while they run, and again
    # as Python ends.
    gc.set_threshold(100_000, 50, 50)
    atexit.register(gc.freeze)
    # A thread that waits for the others gives up its core after 50 µs, as long as it takes to wake
    # it again, instead of 10 ms: where other programs have the cores, an iteration of a GAN takes
    # 57 ms, and 130 where threads wait for 0.5 ms. GNU's OpenMP reads this when torch or numba
    # loads it.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    if parts:
        from dynamics_cli.kinds.registry import use

        for path in parts:
            use(path)
