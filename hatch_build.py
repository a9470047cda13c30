"""Puts `configs/` and `experiments/` inside the wheel; an editable install leaves them there."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundleHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        for folder in ("configs", "experiments"):
            build_data["force_include"][folder] = f"dynamics_cli/_bundled/{folder}"
