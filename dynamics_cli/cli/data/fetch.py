"""`dyn data fetch`: downloading a data set."""

from __future__ import annotations

import click

from dynamics_cli.cli.data.names import complete_name
from dynamics_cli.cli.options import quiet_option

EXAMPLES = """\b
Examples:
  dyn data fetch mnist
  dyn data fetch mnist --mirror https://example.org/mnist/
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", shell_complete=complete_name)
@click.option(
    "--mirror",
    "mirrors",
    multiple=True,
    metavar="URL",
    help="Try this directory of gzipped files first, https only; can be repeated.",
)
@click.option("--offline", is_flag=True, help="Do not use the network (so does DYN_OFFLINE=1).")
@quiet_option
def fetch(name: str, mirrors: tuple[str, ...], offline: bool, quiet: bool) -> None:
    """Download data set NAME (mnist) from public mirrors.

    What arrives is used only if its SHA-256 is that of the original files; what is here is not downloaded again.
    """
    from dynamics_cli.cli.data.bars import CountBar
    from dynamics_cli.cli.output import emit, say
    from dynamics_cli.datasets.files.catalogue import refuse_unless
    from dynamics_cli.datasets.files.fetch import MIRRORS, fetch_mnist

    refuse_unless(name, ("mnist",), "downloaded")
    with CountBar("B", shown=not quiet) as bar:
        directory = fetch_mnist(
            mirrors=(*mirrors, *MIRRORS),
            offline=offline,
            progress=lambda file, done, total: bar(done, total, file),
            on_wait=lambda message: say(message, quiet=quiet),
        )
    emit(str(directory))
