import pytest


@pytest.fixture(autouse=True)
def outputs(tmp_path, monkeypatch):
    """Runs and figures go to a folder of the test's own."""
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "outputs"))
    return tmp_path / "outputs"
