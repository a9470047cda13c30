"""The version of the program, which the package, runs and downloads say."""

__version__ = "0.1.0"
