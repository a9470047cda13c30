"""`python -m dynamics_cli`: the same as `dyn`."""

from __future__ import annotations

from dynamics_cli.cli import main

if __name__ == "__main__":
    main()
