from pathlib import Path

import pytest
from click.testing import CliRunner

from dynamics_cli.cli import main
from tests.cli.conftest import CONFIG


class Harm:
    """Something that must not happen: a file that must not appear."""

    def __init__(self, path):
        self.path = path

    @property
    def done(self):
        """Whether it happened; afterwards it can happen again."""
        happened = self.path.exists()
        self.path.unlink(missing_ok=True)
        return happened

    def __reduce__(self):
        return Path.touch, (self.path,)  # what a pickle of this does when it is loaded


@pytest.fixture
def harm(tmp_path):
    harm = Harm(tmp_path / "pwned")
    yield harm
    assert not harm.done


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working directory with `toy.yaml` in it; all that is written stays in it."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("DYN_OUTPUTS", str(place / "outputs"))
    monkeypatch.setenv("DYN_DATA", str(place / "data"))
    monkeypatch.delenv("DYN_TRACEBACK", raising=False)
    (place / "toy.yaml").write_text(CONFIG)
    return place


def dyn(*arguments):
    """Call the command line in this process; whatever is no refusal is raised."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def tree(folder):
    """Names of everything below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
