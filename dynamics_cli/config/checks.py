"""Interim."""

from dynamics_cli.config.load import check_config, check_sections
