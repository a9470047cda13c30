"""What the program's own source may not hold, found in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "commands", "pty",
    "telnetlib",
}  # fmt: skip
"""Not imported: they build objects from bytes, or are shells."""
CALLS = (
    "eval", "exec", "compile", "__import__", "execfile", "input", "os.system", "os.popen", "os.startfile", "os.exec*",
    "os.spawn*", "os.posix_spawn*", "tempfile.mktemp", "subprocess.getoutput", "subprocess.getstatusoutput",
    "yaml.unsafe_load*", "yaml.full_load*", "ssl._create_unverified_context", "urllib.request.urlopen",
    "urllib.request.urlretrieve", "pandas.read_pickle", "torch.hub.load", "numpy.loads",
    # these write where an archive says
    "extractall", "*.extractall", "extract", "*.extract", "unpack_archive", "*.unpack_archive",
)  # fmt: skip
"""Not called, by patterns of their full name."""
NEEDED = {
    "numpy.load": ("allow_pickle", False),
    "numpy.lib.format.read_array": ("allow_pickle", False),
    "numpy.lib.format.write_array": ("allow_pickle", False),
    "torch.load": ("weights_only", True),
}
"""Calls that must say so."""
SAFE_LOADERS = {"yaml.SafeLoader", "yaml.CSafeLoader"}
PROCESSES = {f"subprocess.{name}" for name in ("run", "Popen", "call", "check_call", "check_output")}


@cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text)


def unsafe(text: str) -> Iterator[str]:
    """Yield `line: what` for everything in a module's source that must not be there."""
    nodes = list(ast.walk(parsed(text)))
    names: dict[str, str] = {}  # full names of imports, by the names that the module gives them
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"{node.lineno}: imports {name}" for name in found if name.split(".")[0] in MODULES)
        elif isinstance(node, ast.Call):
            yield from (f"{node.lineno}: calls {what}" for what in _unsafe_call(node, names))
        elif isinstance(node, ast.ClassDef):
            loaders = {_full_name(base, names) for base in node.bases} - SAFE_LOADERS
            yield from (f"{node.lineno}: extends {base}" for base in loaders if fnmatchcase(base, "yaml*Loader"))


def _unsafe_call(call: ast.Call, names: dict[str, str]) -> Iterator[str]:
    name, said = _full_name(call.func, names), {keyword.arg: keyword.value for keyword in call.keywords}

    def says(key: str, value: bool) -> bool:
        return isinstance(given := said.get(key), ast.Constant) and given.value is value

    if any(fnmatchcase(name, pattern) for pattern in CALLS):
        yield name
    if name in NEEDED and not says(*NEEDED[name]):
        yield f"{name} without {NEEDED[name][0]}={NEEDED[name][1]}"
    if name in ("yaml.load", "yaml.load_all"):
        loader = said.get("Loader", call.args[1] if len(call.args) > 1 else ast.Constant(None))
        if _full_name(loader, names) not in SAFE_LOADERS:
            yield f"{name} without a safe loader"
    if "shell" in said and not says("shell", False):
        yield f"{name} through a shell"
    if name in PROCESSES and call.args and isinstance(call.args[0], ast.Constant | ast.JoinedStr):
        yield f"{name} with a text instead of a list"


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_full_name(node.value, names)}.{node.attr}"
    return ""
