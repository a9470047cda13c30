"""Progress of downloads and of reading images, on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm


class CountBar:
    """A bar for things that are counted, bytes or images; it appears with the first call."""

    def __init__(self, unit: str, *, shown: bool) -> None:
        self.unit, self.shown = unit, shown
        self._label = ""
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> CountBar:
        return self

    def __call__(self, done: int, total: int | None, label: str = "") -> None:
        """Note that `done` of `total` (None: not known) are done; another label begins another bar."""
        if not self.shown:
            return
        if self._bar is None or label != self._label:
            from tqdm import tqdm

            self.close()
            self._label = label
            self._bar = tqdm(
                total=total,
                desc=label or None,
                unit=self.unit if self.unit == "B" else f" {self.unit}",
                unit_scale=self.unit == "B",
                # a log file gets a line now and then, a terminal ten a second
                mininterval=0.1 if sys.stderr.isatty() else 10.0,
                dynamic_ncols=True,
                file=sys.stderr,
            )
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            self._bar.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
