import shlex
import subprocess
import sys
import textwrap

import pytest

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config.describe import WHOLE, list_kinds
from dynamics_cli.kinds.registry import SECTIONS

from .conftest import CONFIG


def test_all_bundled_configs_are_valid(dyn):
    files = sorted(CONFIGS.rglob("*.yaml"))
    answer = dyn("config", "check", *files)
    assert answer.code == 0, answer.err
    assert answer.out.count(": valid\n") == len(files) > 0


def example_of(dyn, name, file):
    """Write the example that `dyn explain` shows, after the commands in its comments; return the
    rest of the page.
    """
    page, _, shown = dyn("explain", name).out.partition("\nExample:\n")
    file.write_text(textwrap.dedent(shown))
    for line in file.read_text().splitlines():
        if line.startswith("# python "):
            subprocess.run([sys.executable, *shlex.split(line)[2:]], check=True)
    return page


def test_every_example_that_is_explained_is_valid(dyn, place):
    names = [*WHOLE, *SECTIONS, *(f"{one['section']}.{one['kind']}" for one in list_kinds())]
    for name in names:
        example_of(dyn, name, place / f"{name}.yaml")
    answer = dyn("config", "check", *(f"{name}.yaml" for name in names))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count(": valid\n") == len(names) > 90


def test_problems_of_all_files(dyn, place):
    (place / "a.yaml").write_text(CONFIG.replace("width: 8", "width: 0"))
    (place / "b.yaml").write_text(CONFIG.replace("lr: 0.01", "lr: 0"))
    answer = dyn("config", "check", "a.yaml", "toy.yaml", "b.yaml", "c.yaml")
    assert (answer.code, answer.out) == (3, "toy.yaml: valid\n")
    assert answer.err.splitlines() == [
        "Error: a.yaml:3: architecture.width: must be >= 1, not 0",
        "Error: b.yaml:6: optimizer.lr: must be > 0, not 0",
        "Error: c.yaml: there is no such file, nor a bundled config of this name",
    ]
    rising = CONFIG.replace("lr: 0.01", "lr: 0.01, schedule: {kind: cosine, warm_up: 9999}")
    (place / "d.yaml").write_text(rising)
    told = "d.yaml:6: optimizer.schedule: warm_up lasts 9999 iterations, longer than the run"
    assert told in dyn("config", "check", "d.yaml").err
    found = dyn("config", "check", "a.yaml", "toy.yaml", "--json")
    assert found.code == 3
    assert found.json == [
        {
            "file": "a.yaml",
            "valid": False,
            "problems": [
                {
                    "file": "a.yaml",
                    "line": 3,
                    "key": "architecture.width",
                    "message": "must be >= 1, not 0",
                }
            ],
        },
        {"file": "toy.yaml", "valid": True, "problems": []},
    ]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (
            "record.measures=[{kind: singular_values, layer: w}]",
            "record.measures: singular_values.layer 'w' is no weight",
        ),
        ("record.measures=[test_loss]", "record.measures: no measure 'test_loss' here"),
        ("record.parameters=[w]", "record.parameters: no parameter 'w'"),
        ("architecture.train=[w]", "architecture.train: the network has no weight 'w'"),
        ("optimizer.layer_lr={w: 1.0}", "optimizer.layer_lr: no weight 'w'"),
    ],
)
def test_what_the_plan_of_a_run_refuses(setting, problem, dyn):
    answer = dyn("config", "check", "toy.yaml", "--set", setting)
    assert (answer.code, answer.out) == (3, "")
    assert problem in answer.err


def test_a_problem_of_measures_has_its_line(dyn, place):
    (place / "a.yaml").write_text(f"{CONFIG}\nrecord:\n  measures: [test_loss]\n")
    line = len(CONFIG.splitlines()) + 3
    assert dyn("config", "check", "a.yaml").err.startswith(
        f"Error: a.yaml:{line}: record.measures: no measure"
    )
