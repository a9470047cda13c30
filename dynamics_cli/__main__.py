"""`python -m dynamics_cli`: the same as `dyn`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself takes milliseconds, in which Ctrl-C may come

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # while modules are imported there is nothing to tidy up: Ctrl-C ends the program as it does
    # others, without a word
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from dynamics_cli.cli import main

if __name__ == "__main__":
    main()
