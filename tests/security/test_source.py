"""The program's source: nothing in it unpickles, evaluates, or asks a shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .source import parsed, unsafe

NETWORK = ("urllib.request", "http", "requests", "ftplib", "httpx", "pooch")
ROOT = Path(__file__).parents[2]
MODULES = sorted(
    [*(ROOT / "dynamics_cli").rglob("*.py"), *(ROOT / "experiments").rglob("*.py"), ROOT / "hatch_build.py"]
)


def test_the_source_is_safe() -> None:
    assert len(MODULES) > 200
    found = {str(path.relative_to(ROOT)): list(unsafe(path.read_text(encoding="utf-8"))) for path in MODULES}
    assert {path: what for path, what in found.items() if what} == {}


SOURCES = {
    "import pickle": "imports pickle",
    "from pickle import loads": "imports pickle",
    "eval('1')": "calls eval",
    "import os\nos.system('ls')": "calls os.system",
    "from os import system as s\ns('ls')": "calls os.system",
    "import tempfile\ntempfile.mktemp()": "calls tempfile.mktemp",
    "import yaml\nyaml.load(text)": "calls yaml.load without a safe loader",
    "import yaml\nclass L(yaml.Loader): ...": "extends yaml.Loader",
    "import numpy as np\nnp.load(path)": "calls numpy.load without allow_pickle=False",
    "import numpy as np\nnp.load(path, allow_pickle=flag)": "calls numpy.load without allow_pickle=False",
    "from numpy.lib import format\nformat.read_array(f)": "calls numpy.lib.format.read_array without "
    "allow_pickle=False",
    "import torch\ntorch.load(path)": "calls torch.load without weights_only=True",
    "import subprocess\nsubprocess.run(command, shell=True)": "calls subprocess.run through a shell",
    "import subprocess\nsubprocess.run(f'ls {path}')": "calls subprocess.run with a text instead of a list",
    "archive.extractall(folder)": "calls archive.extractall",
    "import urllib.request\nurllib.request.urlopen(url)": "calls urllib.request.urlopen",
    "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)": None,
    "import numpy as np\nnp.load(path, allow_pickle=False)": None,
    "import torch\ntorch.load(path, weights_only=True)": None,
    "import subprocess\nsubprocess.run(['ls', path], check=True)": None,
    "model.eval()": None,
}


@pytest.mark.parametrize("text", SOURCES)
def test_bad_source_is_found_and_good_source_is_not(text: str) -> None:
    told = SOURCES[text]
    assert [what.split(": ")[1] for what in unsafe(text)] == ([] if told is None else [told])


def test_one_module_uses_the_network() -> None:
    users = set()
    for path in MODULES:
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.startswith(NETWORK) for name in names):
                users.add(path.name)
    assert users == {"store.py"}
