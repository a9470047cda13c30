"""Private parts of other packages: each stands in the modules named here, and so does a release
without it.
"""

import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import dynamics_cli

ROOT = Path(dynamics_cli.__file__).parent
PARTS = {
    "numba.core.ccallback": ("FunctionCache", "formulas/compiling.py"),
    "numba.core.dispatcher": ("FunctionCache", "formulas/compiling.py"),
    "numba.np.linalg": ("ensure_blas", "formulas/compiling.py"),
    "numba.np.arraymath": ("ensure_blas", "formulas/compiling.py"),
    "numba.core.caching": ("FunctionCache", "formulas/compiling.py"),
    "numba.core.event": ("register", "formulas/compiling.py"),
    "numba.core.cgutils": ("alloca_once", "formulas/native.py"),
    "numba.core.codegen": ("get_host_cpu_features", "formulas/native.py"),
    "numba.core.compiler_lock": ("global_compiler_lock", "formulas/native.py"),
    "numba.core.typing.templates": ("AttributeTemplate", "formulas/native.py"),
    "torch.utils._python_dispatch": ("TorchDispatchMode", "draws.py"),
    "torch.utils._pytree": (
        "tree_map",
        "instruments/data.py",
        "instruments/modules.py",
        "instruments/network.py",
        "gradients/derivatives.py",
        "recording/activations.py",
        "recording/positions.py",
        "kinds/torch_optimizers.py",
    ),
}
"""Module of another package -> what is taken from it, and the modules that take it."""
IMPORTED = re.compile(
    r"^ *(?:from|import) (numba\.(?:core|np)[\w.]*|(?!dynamics_cli)\w[\w.]*\._[\w.]+)", re.MULTILINE
)
ASKED = re.compile(r"\b(?:torch|np|scipy)\.(?:\w+\.)*_[a-z]\w*")


@pytest.mark.parametrize("module", PARTS)
def test_a_private_part_is_there(module):
    """Where this fails, the release named has broken the module named."""
    name, place, *_ = PARTS[module]
    package = module.partition(".")[0].replace("yaml", "PyYAML")
    importlib.import_module("dynamics_cli.formulas.compiling")
    told = f"{package} {version(package)} has no {module}.{name}, which dynamics_cli/{place} takes"
    assert hasattr(importlib.import_module(module), name), told


def test_each_stands_where_it_is_named():
    sources = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in ROOT.rglob("*.py")
    }
    found = {(part, file) for file, source in sources.items() for part in IMPORTED.findall(source)}
    assert found == {(module, file) for module, (_, *files) in PARTS.items() for file in files}
    assert [
        part for source in sources.values() for part in ASKED.findall(source) if part not in PARTS
    ] == []
