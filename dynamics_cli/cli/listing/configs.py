"""`dyn list configs`."""

from __future__ import annotations

import click

from dynamics_cli.cli.options import json_option


@click.command(epilog="Example: dyn list configs")
@json_option
def configs(as_json: bool) -> None:
    """List the bundled configs.

    `dyn train`, `dyn show` and `dyn config check` take their names as well as files.
    """
    from dynamics_cli.cli.arguments import bundled_configs
    from dynamics_cli.cli.output import emit, emit_json, table

    found = [{"name": name, "path": path, "title": _title(path)} for name, path in bundled_configs().items()]
    if as_json:
        emit_json(found)
        return
    emit(table(["config", "what it is"], [[str(c["name"]), str(c["title"])] for c in found]))


def _title(path: object) -> str:
    """Return the first line of comment that speaks to people."""
    from pathlib import Path

    for line in Path(str(path)).read_text(encoding="utf-8").splitlines():
        text = line.removeprefix("#").strip()
        if not line.startswith("#"):
            return ""
        if text and not text.startswith("yaml-language-server"):
            return text
    return ""
