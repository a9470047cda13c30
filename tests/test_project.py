"""The project as a whole: rooms import one way, the schema file is current, configs say what they are."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dynamics_cli.config import json_schema, load_config

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "configs").glob("*/*.yaml"))

MAY_IMPORT = {
    "config": set(),
    "losses": set(),
    "measures": {"losses"},
    "theory": {"losses", "measures"},
    "datasets": {"config", "runs"},
    "architectures": {"config"},
    "runs": {"config", "datasets", "architectures"},
    "training": {"config", "datasets", "architectures", "losses", "runs"},
    "plotting": {"runs"},
    "sweeps": {"config", "datasets", "architectures", "losses", "runs", "training", "plotting"},
    "analysis": {"config", "datasets", "architectures", "losses", "runs", "measures", "plotting"},
    "reproduction": {
        "config", "datasets", "architectures", "losses", "runs", "training", "sweeps", "measures", "theory", "plotting",
        "analysis",
    },
}  # fmt: skip
"""CONTRIBUTING.md, Architecture."""
FOUNDATION = {"errors", "jsonable", "memory", "__version__"}
"""What all may import."""


def imported_rooms(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "dynamics_cli":
                names.update(f"dynamics_cli.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("dynamics_cli.")}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_one_way(room: str) -> None:
    files = sorted((ROOT / "dynamics_cli" / room).rglob("*.py"))
    assert files
    allowed = {room, *FOUNDATION, *MAY_IMPORT[room], *({"_bundled"} if room == "reproduction" else set())}
    found = {str(file.relative_to(ROOT)): sorted(imported_rooms(file) - allowed) for file in files}
    assert {file: rooms for file, rooms in found.items() if rooms} == {}


def test_experiments_do_not_import_the_command_line() -> None:
    for file in (ROOT / "experiments").rglob("*.py"):
        assert "cli" not in imported_rooms(file), file


def test_the_schema_file_is_current() -> None:
    assert json.loads((ROOT / "configs" / "schema.json").read_text()) == json.loads(json.dumps(json_schema()))


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_config_is_valid_and_opens_with_what_it_is(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# yaml-language-server: $schema=../schema.json"
    assert re.match(r"# .*\. About \d+ (s|min)\.$", lines[1]), lines[1]
    assert lines[2].startswith(f"#   dyn train configs/{file.parent.name}/{file.name}")
    assert re.match(r"# (stated|released|inferred|assumed)", lines[3])
    config = load_config(file)
    assert config.name.startswith(file.parent.name)


def test_there_are_configs() -> None:
    assert len(CONFIGS) == len(list((ROOT / "configs").rglob("*.yaml"))) >= 6


def test_the_readme_has_its_two_commands_first() -> None:
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    assert blocks[0].rstrip().endswith("dyn reproduce boursier2022-fig2")
    assert blocks[1] == ".venv/bin/pytest -n auto\n"


def test_importing_the_package_is_light() -> None:
    code = "import sys, dynamics_cli; print([m for m in ('torch', 'numpy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
