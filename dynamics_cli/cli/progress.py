"""The progress bar of a training run."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm


class ProgressBar:
    """Shows iterations, loss, rate and time left on stderr; appears with the first call, so that no work shows none."""

    def __init__(self, total: int, *, label: str = "", shown: bool = True) -> None:
        self.total, self.label, self.shown = total, label, shown
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, iteration: int, loss: float) -> None:
        """Note that `iteration` has been reached, with the last loss that was looked at."""
        if not self.shown:
            return
        if self._bar is None:
            from tqdm import tqdm

            # a log file gets a line now and then, a terminal ten a second
            interval = 0.1 if sys.stderr.isatty() else 10.0
            self._bar = tqdm(
                total=self.total,
                initial=iteration,  # a resumed run starts here: the rate counts from there on
                desc=self.label or None,
                unit="it",
                mininterval=interval,
                dynamic_ncols=True,
                file=sys.stderr,
            )
        self._bar.set_postfix_str(f"loss {loss:.3e}", refresh=False)
        self._bar.update(iteration - self._bar.n)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
