"""Other programs are called with a list of arguments, never through a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dynamics_cli.runs.info import provenance

from .conftest import Harm


def test_git_is_asked_about_a_folder_with_a_shell_command_as_its_name(harm: Harm, tmp_path: Path) -> None:
    import importlib

    module = importlib.import_module(provenance.__module__)
    folder = tmp_path / f"$(touch {harm.path.name})"
    (folder / ".git").mkdir(parents=True)
    subprocess.run(f"cd {harm.path.parent} && true {folder.name}", shell=True, check=True)
    assert harm.done
    assert module.commit(folder) is None
