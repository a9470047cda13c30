"""`python -m dynamics_cli`: the same as `dyn`."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # while modules are imported there is nothing to tidy up: Ctrl-C ends the program as it does others, without a word
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from dynamics_cli.cli import main

if __name__ == "__main__":
    main()
