"""Arrays that grow together: one of them, written last, acknowledges a row of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dynamics_cli.runs.info import owner
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.arrays import ArrayWriter, open_for_append, read_array, sums_seal


class ArrayGroup:
    """Arrays below a run directory, named `losses` or `trajectory/hidden_weight`, that grow together.

    `key` names the array that acknowledges: its rows are the rows of the group.
    """

    def __init__(self, directory: Path, key: str, info: Mapping[str, Any]) -> None:
        """Start a group without arrays of the run of `info`; they appear with the first rows, or with `reopen`."""
        self.directory, self.key, self._info = directory, key, info
        self._arrays: dict[str, ArrayWriter] = {}

    def reopen(self, found: Sequence[str], rows: Mapping[str, int]) -> None:
        """Open the arrays that `rows` names, cut to these numbers of rows, and delete the others that were `found`.

        Raises CorruptRunError: an array has fewer intact rows.
        """
        for name in sorted({*found, *rows}, key=lambda n: (n != self.key, n)):
            path = layout.array_file(self.directory, name)
            if name in rows:
                self._arrays[name] = open_for_append(path, rows[name], owner(self._info, name))
                continue
            with files.os_errors_as_run_errors(path):  # the key comes first: without it nothing is acknowledged
                files.remove(path)
                files.remove(path.with_suffix(layout.CHECKSUM_SUFFIX))

    @property
    def rows(self) -> int:
        """Acknowledged rows."""
        return self._arrays[self.key].rows if self.key in self._arrays else 0

    def counts(self) -> dict[str, int]:
        """Rows of each array after `align`."""
        return dict.fromkeys(self._arrays, self.rows)

    def seals(self) -> dict[str, str]:
        """Checksum of each array's checksum file."""
        return {name: sums_seal(array.path) for name, array in self._arrays.items()}

    def last(self, name: str) -> int:
        """Last acknowledged number of an array of integers (n,); -1 when there is none."""
        return int(read_array(self._arrays[name].path, self.rows)[-1]) if self.rows else -1

    def append(self, blocks: Mapping[str, NDArray[Any]]) -> None:
        """Append one block to every array; all or none of it is acknowledged.

        Raises:
            ValueError: other arrays than before, or blocks of different lengths, or of another shape or dtype.
            RunError: the disk is full, not writable or failing.
        """
        if self.rows and set(blocks) != set(self._arrays):
            raise ValueError(f"arrays {sorted(blocks)} instead of {sorted(self._arrays)}")
        if self.key not in blocks or len({len(block) for block in blocks.values()}) != 1:
            lengths = ", ".join(f"{name} {len(block)}" for name, block in blocks.items())
            raise ValueError(f"blocks of different lengths, or without {self.key}: {lengths}")
        before = self.rows
        for name in sorted(blocks, key=lambda n: n == self.key):
            block = blocks[name]
            if name not in self._arrays:
                path = layout.array_file(self.directory, name)
                self._arrays[name] = ArrayWriter(path, block.shape[1:], block.dtype, owner(self._info, name))
            elif self._arrays[name].rows != before:  # an earlier append failed half-way
                self._arrays[name].truncate(before)
            self._arrays[name].append(block)

    def align(self) -> None:
        """Cut every array to the acknowledged rows, with nothing behind them."""
        for array in self._arrays.values():
            array.truncate(self.rows)

    def sync(self) -> None:
        """Return when everything acknowledged is on the disk."""
        for array in self._arrays.values():
            array.sync()

    def close(self) -> None:
        """Close all files."""
        for array in self._arrays.values():
            array.close()
