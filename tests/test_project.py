"""The project as a whole: rooms import one way, configs say what they are."""

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from dynamics_cli import list_papers
from dynamics_cli.config import load_config
from dynamics_cli.reproduction.settings import origins_in

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "configs").glob("*/*.yaml"))

MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "dynamics_cli").rglob("*.py"))
}
KINDS = {
    "architectures",
    "datasets",
    "initializations",
    "kinds",
    "losses",
    "optimizers",
    "recording",
}
MAY_IMPORT = {
    "measures": set(),
    "formulas": set(),
    "kinds": {"formulas"},
    "gradients": {"kinds", "formulas", "measures"},
    "config": {"kinds", "formulas"},
    "losses": {"kinds"},
    "optimizers": {"kinds", "formulas"},
    "recording": {"kinds", "formulas", "gradients", "measures", "architectures"},
    "architectures": {"kinds"},
    "theory": {"measures", "recording", "gradients", "training", "kinds"},
    "runs": {"config", "kinds", "plotting"},
    "datasets": {"kinds", "runs"},
    "initializations": {"kinds", "datasets"},
    "training": {"config", "gradients", "formulas", "kinds", "losses", "runs"},
    "instruments": {"config", "gradients", "recording", "runs", "training", "kinds"},
    "plotting": set(),
    "sweeps": {"config", "kinds", "plotting", "runs", "training"},
    "analysis": {
        "config",
        "kinds",
        "recording",
        "gradients",
        "runs",
        "measures",
        "plotting",
        "sweeps",
    },
    "reproduction": {
        "config",
        "gradients",
        "runs",
        "training",
        "sweeps",
        "measures",
        "theory",
        "plotting",
        "analysis",
        *KINDS,
    },
    "pages": {
        "config",
        "datasets",
        "runs",
        "sweeps",
        "measures",
        "plotting",
        "analysis",
        "reproduction",
    },
    "templates": {"kinds", "runs"},
}
"""CONTRIBUTING.md, Architecture; what types alone need counts too."""
FOUNDATION = {
    "draws",
    "errors",
    "mathematics",
    "memory",
    "notebook",
    "process",
    "text",
    "version",
    "waiting",
}
"""What all may import."""


@cache
def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imported(file):
    """Return the modules of the program that a file imports, and where: at once, for `types`, or
    in a `function`.
    """
    found = {}

    def visit(node, where):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                where = "types"
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                where = "function"
            case ast.ImportFrom():
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                for name in (name if name in MODULES else str(node.module) for name in names):
                    found.setdefault(name, set()).add(where)
            case ast.Import():
                for alias in node.names:
                    found.setdefault(alias.name, set()).add(where)
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]):
                found.setdefault(name, set()).add(where)
        for child in ast.iter_child_nodes(node):
            visit(child, where)

    visit(tree_of(file), "module")
    return {name: where for name, where in found.items() if name in MODULES}


def imported_rooms(file):
    return {name.split(".")[1] for name in imported(file) if "." in name}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_one_way(room):
    files = sorted((ROOT / "dynamics_cli" / room).rglob("*.py"))
    assert files
    allowed = {
        room,
        *FOUNDATION,
        *MAY_IMPORT[room],
        *({"_bundled"} if room in ("config", "reproduction", "pages") else set()),
    }
    found = {str(file.relative_to(ROOT)): sorted(imported_rooms(file) - allowed) for file in files}
    assert {file: rooms for file, rooms in found.items() if rooms} == {}


def test_no_room_imports_itself_by_way_of_others():
    assert set(graphlib.TopologicalSorter(MAY_IMPORT).static_order()) == set(MAY_IMPORT)


def test_every_room_is_known():
    rooms = {path.parent.name for path in (ROOT / "dynamics_cli").glob("*/__init__.py")}
    assert rooms == {*MAY_IMPORT, "cli", "_bundled"}


def test_no_module_imports_itself_by_way_of_others():
    """Neither at once nor inside functions; a package imports what its `__init__` names.

    Types alone may: a base class of kinds names the problem that it is given, which holds the
    config with its kinds.
    """
    graph = {
        name: {module for module, where in imported(file).items() if where != {"types"}} - {name}
        for name, file in MODULES.items()
    }
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(MODULES)


def test_a_public_name_stands_in_one_module():
    """But for functions of `api`, and commands, which have the names of what they call."""
    homes = Counter(
        node.name
        for name, file in MODULES.items()
        if not re.match(r"dynamics_cli\.(api|cli\.|.*__pycache__)", name)
        for node in tree_of(file).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
    )
    assert [name for name, count in homes.items() if count > 1] == []


def named_kinds(file, bundled):
    """Return where a file names bundled kinds: classes, but for imports and types, and texts
    compared with `.kind`.
    """
    nodes = list(ast.walk(tree_of(file)))
    types = {
        id(inner)
        for node in nodes
        for of in ("annotation", "returns")
        for inner in _below(node, of)
    }
    imports = [
        node
        for node in nodes
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dynamics_cli")
    ]
    here = {alias.name for node in imports for alias in node.names}
    found = []
    for node in nodes:
        match node:
            case ast.Name(id=name) if name in bundled and name in here and id(node) not in types:
                found.append(f"{file.name}:{node.lineno} {name}")
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (
                name in bundled and module in here
            ):
                found.append(f"{file.name}:{node.lineno} {name}")
            case ast.Compare() if "kind" in {getattr(side, "attr", "") for side in ast.walk(node)}:
                texts = {side.value for side in ast.walk(node) if isinstance(side, ast.Constant)}
                found += [
                    f"{file.name}:{node.lineno} {text}" for text in texts & {*bundled.values()}
                ]
    return found


def _below(node, field):
    if isinstance(below := getattr(node, field, None), ast.AST):
        yield from ast.walk(below)


def kinds_by_room():
    """Return the kinds that each room, and `experiments`, defines: class -> name."""
    modules = {name: name.split(".")[1] for name in MODULES if name.count(".") > 1}
    files = [(MODULES[name], room) for name, room in modules.items()]
    files += [(file, "experiments") for file in (ROOT / "experiments").rglob("*.py")]
    kinds = {}
    for file, room in files:
        for node in ast.walk(tree_of(file)):
            for key in node.keywords if isinstance(node, ast.ClassDef) else ():
                if key.arg == "kind" and isinstance(key.value, ast.Constant):
                    kinds.setdefault(room, {})[node.name] = str(key.value.value)
    return kinds


OF_OTHER_ROOMS = {
    "dynamics_cli.training.kernels",  # by the exact loss
    "dynamics_cli.theory.assumptions",  # measures the sharpness
}
"""Modules that name kinds of other rooms."""


def test_only_a_few_modules_name_kinds_outside_their_rooms():
    """A kind from outside, such as a relative of a bundled kind, has its rights elsewhere."""
    kinds = kinds_by_room()
    assert sum(map(len, kinds.values())) > 110
    assert "gan" in kinds["experiments"].values()
    naming = set()
    for name, file in MODULES.items():
        room = name.split(".")[1] if name.count(".") else ""
        others = {}
        for of, given in kinds.items():
            others |= {} if of == room else given
        if named_kinds(file, others):
            naming.add(name)
    assert naming == OF_OTHER_ROOMS


def test_experiments_do_not_import_the_command_line():
    for file in (ROOT / "experiments").rglob("*.py"):
        assert "cli" not in imported_rooms(file), file


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_config_is_valid_and_opens_with_what_it_is(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0].endswith(".")
    assert "About" not in lines[0]
    assert re.match(rf"#   dyn (train|sweep) configs/{file.parent.name}/{file.name}", lines[1])
    assert origins_in(file)
    sweeps = ["sweep=null"] if lines[1].startswith("#   dyn sweep") else []
    config = load_config(file, sweeps)
    assert config.name.startswith(file.parent.name)


def test_the_readme_has_every_paper():
    table = re.findall(
        r"^\| \[.+\]\(experiments/(\w+)/NOTES\.md\) \| `dyn reproduce (\w+)` \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert all(notes == key for notes, key in table)
    assert sorted(key for _, key in table) == sorted(paper["key"] for paper in list_papers())


def test_importing_the_package_is_light():
    code = (
        "import sys, dynamics_cli; print([m for m in ('torch', 'numpy', 'matplotlib') if m in"
        " sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"
