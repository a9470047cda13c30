"""Configs and experiments under one import name, in a checkout and in an installed wheel alike.

The wheel carries `configs/` and `experiments/` inside this package; in a checkout they stand at the
top level, and this package's search path points there.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent
ROOT = _HERE if (_HERE / "experiments").is_dir() else _HERE.parent.parent
"""Folder that holds `configs` and `experiments`."""
CONFIGS = ROOT / "configs"
"""Folder of the papers' configs."""

__path__ = [str(ROOT)]


def bundled_configs() -> dict[str, Path]:
    """Return the papers' configs by name, e.g. `boursier2022/orthogonal`."""
    files = sorted(CONFIGS.glob("*/*.yaml"))
    return {file.relative_to(CONFIGS).with_suffix("").as_posix(): file for file in files}


def bundled_config(name: str) -> Path | None:
    """Return a bundled config by its name, or by `configs/<name>.yaml`."""
    return bundled_configs().get(
        name.removeprefix("./").removeprefix("configs/").removesuffix(".yaml")
    )
