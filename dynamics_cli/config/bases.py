"""The old address of names of `dynamics_cli.kinds`, which goes with the next release."""

from dynamics_cli.kinds import moved

__getattr__ = moved(__name__)
