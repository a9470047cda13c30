import os

import pytest


@pytest.fixture(scope="package", autouse=True)
def outputs(tmp_path_factory):
    """One folder of runs for all tests of this room and all workers: runs are trained once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "outputs"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYN_OUTPUTS", str(folder))
        yield folder
