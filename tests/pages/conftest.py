"""Pages of small runs, a sweep and a figure; and a browser to open them in."""

import shutil

import pytest

import dynamics_cli as dyn
from tests.cases import TWO_POINTS, read

POINTS = read(
    """
name: two-points
initialization: {kind: balanced, scale: 0.01}
optimizer: {kind: gd, lr: 0.02, iterations: 600}
record:
  snapshots: {kind: geometric, ratio: 1.3}
  measures: [weight_norm, kernel_alignment]
backend: compiled
""",
    TWO_POINTS,
)
PLANE = read(
    """
name: plane
dataset:
  kind: points
  x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
  y: [1, 1, -1, -1]
loss: {kind: logistic}
record:
  snapshots: {kind: geometric, ratio: 2.0}
  measures: [train_accuracy]
""",
    POINTS,
)
HOSTILE = (
    "</script><script>document.title = 'broken'</script><img src=x onerror=\"document.title ="
    " 'broken'\">&\u2028"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(autouse=True, scope="session")
def outputs(tmp_path_factory):
    """Let all runs of these tests share a root of outputs."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("outputs")
        patch.setenv("DYN_OUTPUTS", str(root))
        yield root


@pytest.fixture(scope="session")
def points(outputs):
    return dyn.train(POINTS)


@pytest.fixture(scope="session")
def swept(outputs):
    """A sweep of 3 x 2 settings and 2 seeds, some of whose jobs diverge."""
    grid = {"optimizer.lr": [0.01, 0.02, 1e6], "architecture.width": [2, 4]}
    return dyn.sweep(
        POINTS,
        grid,
        seeds=2,
        overrides={"optimizer.iterations": 40, "record.measures": ["weight_norm"]},
    )


@pytest.fixture(scope="session")
def figure(outputs):
    return dyn.reproduce("boursier2022-fig2", formats=["png"])


@pytest.fixture(scope="package")
def browser():
    """Debian's Chromium, or whatever the system has; nothing is downloaded. It is busy while it is
    open.
    """
    driver = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
