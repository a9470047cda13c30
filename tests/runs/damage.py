"""Ways to damage a file."""

import json
import os
import shutil
from contextlib import contextmanager

from dynamics_cli.runs.store.sealed import seal


def flip(data, at, bit=0):
    """Return bytes of which a bit of one byte is another."""
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


DAMAGES = {
    "a bit of the contents": lambda data, other: flip(
        data, 130 if data.startswith(b"\x93NUMPY") else -5
    ),
    "a bit of the header": lambda data, other: flip(data, 20, 2),
    "cut in half": lambda data, other: data[: len(data) // 2],
    "empty": lambda data, other: b"",
    "a byte more": lambda data, other: data + b"\0",
    "deleted": lambda data, other: None,
    "of another run": lambda data, other: other.read_bytes(),
}
"""The new contents of a file, made from its contents and the same file of another run; None
deletes it.
"""


@contextmanager
def damaged(file, damage, other):
    """Damage a file in one of `DAMAGES`, or put a directory or a pipe in its place, for the time
    of the context.
    """
    data = file.read_bytes()
    file.unlink()
    if damage == "a directory":
        file.mkdir()
        (file / "file").write_bytes(data)
    elif damage == "a pipe":
        os.mkfifo(file)
    elif (contents := DAMAGES[damage](data, other)) is not None:
        file.write_bytes(contents)
    try:
        yield
    finally:
        if file.is_dir():
            shutil.rmtree(file)
        file.unlink(missing_ok=True)
        file.write_bytes(data)


def contents(directory, *patterns):
    """Return what every file holds, and where every link leads, by path; locks are left out."""
    held = {}
    for pattern in patterns or ("*",):
        for path in sorted(directory.rglob(pattern)):
            name = path.relative_to(directory).as_posix()
            if path.is_symlink():
                held[name] = str(path.readlink())
            elif path.is_file() and path.name != ".lock":
                held[name] = path.read_bytes()
    return held


def arrays_of(directory):
    """Return the bytes of all arrays below a directory, by path."""
    return contents(directory, "*.npy")


def reseal(path, **entries):
    """Change entries of a sealed document, and give it the checksum that fits."""
    content = json.loads(path.read_bytes())
    del content["checksum"]
    path.write_bytes(seal({**content, **entries}))
