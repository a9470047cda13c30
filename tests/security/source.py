"""What the program's own source may not hold, found in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "commands", "pty",
    "telnetlib",
}  # fmt: skip
"""Not imported: they build objects from bytes, or are shells."""
CALLS = {
    "eval", "exec", "compile", "__import__", "execfile", "input", "os.system", "os.popen", "os.startfile",
    "tempfile.mktemp", "subprocess.getoutput", "subprocess.getstatusoutput", "yaml.unsafe_load",
    "yaml.unsafe_load_all", "yaml.full_load", "yaml.full_load_all", "ssl._create_unverified_context",
    "urllib.request.urlopen", "urllib.request.urlretrieve", "pandas.read_pickle", "torch.hub.load", "numpy.loads",
    "shutil.unpack_archive",
}  # fmt: skip
"""Not called, by their full name."""
PREFIXES = ("os.exec", "os.spawn", "os.posix_spawn")
METHODS = {"extractall", "extract", "unpack_archive"}
"""Not called on anything: they write where an archive says."""
NEEDED = {
    "numpy.load": ("allow_pickle", False),
    "numpy.lib.format.read_array": ("allow_pickle", False),
    "numpy.lib.format.write_array": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
}
"""Calls that must say so."""
SAFE_LOADERS = {"yaml.SafeLoader", "yaml.CSafeLoader"}
PROCESSES = {
    "subprocess.run",
    "subprocess.Popen",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
}


@cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text)


def unsafe(text: str) -> Iterator[str]:
    """Yield `line: what` for everything in a module's source that must not be there."""
    tree = parsed(text)
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"{node.lineno}: imports {name}" for name in found if name.split(".")[0] in MODULES)
        elif isinstance(node, ast.Call):
            yield from (f"{node.lineno}: {what}" for what in _unsafe_call(node, _full_name(node.func, names), names))
        elif isinstance(node, ast.ClassDef):
            bases = [_full_name(base, names) for base in node.bases]
            yield from (
                f"{node.lineno}: extends {base}"
                for base in bases
                if base.endswith("Loader") and base not in SAFE_LOADERS and base.startswith("yaml")
            )


def _unsafe_call(call: ast.Call, name: str, names: dict[str, str]) -> Iterator[str]:
    if name in CALLS or name.startswith(PREFIXES) or name.rpartition(".")[2] in METHODS:
        yield f"calls {name}"
    if name in NEEDED:
        key, value = NEEDED[name]
        if not any(
            k.arg == key and isinstance(k.value, ast.Constant) and k.value.value is value for k in call.keywords
        ):
            yield f"calls {name} without {key}={value}"
    if name in ("yaml.load", "yaml.load_all"):
        loader = next(
            (k.value for k in call.keywords if k.arg == "Loader"), call.args[1] if len(call.args) > 1 else None
        )
        if loader is None or _full_name(loader, names) not in SAFE_LOADERS:
            yield f"calls {name} without a safe loader"
    if any(
        k.arg == "shell" and not (isinstance(k.value, ast.Constant) and k.value.value is False) for k in call.keywords
    ):
        yield f"calls {name} through a shell"
    if name in PROCESSES and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr):
        yield f"calls {name} with a text instead of a list"
    if any(
        k.arg == "verify" and isinstance(k.value, ast.Constant) and k.value.value is False and "requests" in name
        for k in call.keywords
    ):
        yield f"calls {name} without verification"


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return the full names of what a module imports, by the names that it gives them."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(
                {
                    alias.asname or alias.name.split(".")[0]: alias.name if alias.asname else alias.name.split(".")[0]
                    for alias in node.names
                }
            )
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_full_name(node.value, names)}.{node.attr}"
    return ""
