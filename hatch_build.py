"""Puts `configs/`, their schema and `experiments/` inside the wheel; an editable install leaves them where they are."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundleHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        os.environ.pop("DYN_WITH", None)  # the schema is that of the bundled kinds
        sys.path.insert(0, self.root)
        from dynamics_cli.config import json_schema

        Path(self.root, "configs", "schema.json").write_text(json.dumps(json_schema()), encoding="utf-8")
        for folder in ("configs", "experiments"):
            build_data["force_include"][folder] = f"dynamics_cli/_bundled/{folder}"
