"""Leave the handbook's tests out where its extra `docs` is missing."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("sybil")
    else ["blocks.py", "test_blocks.py", "test_notebooks.py", "test_tutorials.py"]
)
