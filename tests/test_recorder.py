"""`dyn.Recorder` in a training loop: the loop stays as it is, and the directory is a run."""

import copy
import io
from contextlib import suppress

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn
from torch.nn.functional import cross_entropy

import dynamics_cli as dyn
from dynamics_cli.analysis.panels import PANELS
from dynamics_cli.analysis.view import View
from dynamics_cli.cli import main
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.runs.marks import marks_of
from tests.cases import TWO_POINTS
from tests.runs.damage import arrays_of

torch.manual_seed(2)
X = torch.randn(24, 1, 4, 4)
Y = torch.arange(24) % 3
MEASURES = [
    "sharpness",
    "distance",
    {"kind": "gradient_norm", "at": {"kind": "list", "include": [7]}},
    {"kind": "update", "of": "cosine_last"},
]


class Loop:
    """A convolutional network with batch norm and dropout, and its training by batches."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Conv2d(1, 2, 3),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Flatten(),
            nn.Linear(8, 3),
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.done = 0
        self.forwards = 0
        self.model[0].register_forward_hook(self.count)

    def count(self, *_):
        self.forwards += 1

    def recorder(self, directory, **options):
        settings = {
            "optimizer": self.optimizer,
            "measures": MEASURES,
            "every": 5,
            "seed": 4,
        }
        numbers = {"lr": lambda: self.optimizer.param_groups[0]["lr"]}
        return dyn.Recorder(
            directory,
            self.model,
            X,
            Y,
            **{**settings, "scalars": numbers, "parameters": ["5.weight"], **options},
        )

    def train(self, until, recorder=None):
        while self.done < until:
            batch = torch.randint(0, len(X), (8,))
            loss = cross_entropy(self.model(X[batch]), Y[batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.done += 1
            if recorder is not None:
                recorder.step(loss=loss)
        return self


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    loop = Loop()
    directory = tmp_path_factory.mktemp("runs") / "runs" / "mine"
    with loop.recorder(
        directory, test=(X[:6], Y[:6]), measures=[*MEASURES, "test_accuracy"]
    ) as recorder:
        loop.train(17, recorder)
    return directory


def test_a_scalar_that_can_name_no_file_is_refused_before_the_folder_is_made(tmp_path):
    with pytest.raises(UsageError, match="scalars: 'a/b' cannot name a file"):
        Loop().recorder(tmp_path / "run", scalars={"a/b": lambda: 1.0})
    assert not (tmp_path / "run").exists()


def test_the_loop_is_the_same_with_and_without(tmp_path):
    alone = Loop().train(12)
    watched = Loop()
    with watched.recorder(tmp_path / "run", every=3) as recorder:
        watched.train(12, recorder)
    assert (watched.forwards, watched.model.training) == (alone.forwards, True)
    pairs = zip(alone.model.parameters(), watched.model.parameters(), strict=True)
    assert all(torch.equal(a, b) and torch.equal(a.grad, b.grad) for a, b in pairs)
    states = alone.model.state_dict(), watched.model.state_dict()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_what_is_recorded_is_what_dyn_measure_gives(recorded):
    run = dyn.load_run(recorded)
    loop = Loop()
    assert run.snapshot_iterations.tolist() == [0, 5, 7, 10, 15, 17]
    states = []
    for iteration in run.snapshot_iterations.tolist():
        state = loop.train(iteration).model.state_dict()
        states.append((iteration, {name: value.clone() for name, value in state.items()}))
    kinds = ["train_loss", "distance", "gradient_norm", "sharpness", "test_accuracy"]
    table = dyn.measure(
        Loop().model,
        X,
        Y,
        measures=kinds,
        checkpoints=states,
        start=states[0][1],
        seed=4,
        x_test=X[:6],
        y_test=Y[:6],
    )
    assert run.losses.tolist() == table.column("train_loss")
    assert run.final_loss == run.losses[-1]
    assert_array_equal(run.measures["distance"], table.column("distance"))
    assert_allclose(run.measures["sharpness"], table.column("sharpness"), rtol=1e-6)
    norms = np.where([i in (0, 7, 17) for i, _ in states], table.column("gradient_norm"), np.nan)
    assert_array_equal(run.measures["gradient_norm"], norms)
    assert_array_equal(
        run.parameters["5.weight"], np.stack([state["5.weight"] for _, state in states])
    )
    assert list(run.measures)[-2:] == ["lr", "batch_loss"]
    assert np.isfinite(run.measures["batch_loss"]).tolist() == [
        False,
        *[True] * 4,
        False,
    ]  # none is given for the last
    config = run.config
    assert (config.recorded, config.name, config.seed, config.loss.kind) == (
        True,
        "mine",
        4,
        "cross_entropy",
    )
    assert (config.optimizer["name"], config.optimizer["momentum"]) == ("SGD", 0.9)
    assert "BatchNorm2d(2" in config.architecture["module"]


COMMANDS = {
    "show": ("show {run}", 0, "name: SGD"),
    "show, as JSON": ("show {run} --json", 0, '"recorded": true'),
    "latest": ("show latest", 0, "complete"),
    "list": ("list runs", 0, "mine"),
    "verify": ("verify {run}", 0, "intact"),
    "compare": ("compare {run} mine", 0, "loss"),
    "plot": ("plot {run} --out {out}", 0, "measures"),
    "plot several": ("plot {run} mine --out {out}", 0, "sharpness"),
    "animate": ("plot {run} --animate --out {out}", 2, "nothing of this run can be animated"),
    "page": ("page {run} -o {out}/a.html", 0, "a.html"),
    "page of several": ("page {run} mine -o {out}/b.html", 0, "b.html"),
    "theories": ("plot {run} --theory", 3, "the dataset is not kept"),
    "train": (
        "train {run}/config.yaml --set optimizer.lr=1",
        3,
        "yaml:2: recorded: a training loop outside of dyn",
    ),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_commands_take_the_run(recorded, tmp_path, monkeypatch, case):
    monkeypatch.setenv("DYN_OUTPUTS", str(recorded.parent.parent))
    text, code, told = COMMANDS[case]
    answer = CliRunner().invoke(main, text.format(run=recorded, out=tmp_path).split())
    assert (answer.exit_code, told in answer.output) == (code, True), answer.output
    assert code == 0 or len(answer.stderr.splitlines()[-1:]) == 1


def test_updates_are_those_of_checkpoints_that_follow_each_other(tmp_path):
    measures = ["directional_sharpness", "critical_lr", {"kind": "update", "of": "cosine_last"}]
    loop = Loop()
    with loop.recorder(tmp_path / "run", measures=measures) as recorder:
        loop.train(12, recorder)
    run = dyn.load_run(tmp_path / "run")
    assert run.snapshot_iterations.tolist() == [0, 5, 10, 12]
    again = Loop()
    states = [(k, copy.deepcopy(again.train(k).model.state_dict())) for k in range(11)]
    table = dyn.measure(Loop().model, X, Y, measures=measures, checkpoints=states, seed=4)
    for name, recorded in run.measures.items():
        if name in table[0]:
            expected = [np.nan, table[5][name], table[10][name], np.nan]  # the end comes unforeseen
            assert_allclose(recorded, expected, rtol=1e-9, err_msg=name)


def test_labels_at_positions(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(3, 4), nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x = torch.randint(3, (6, 5))
    y = x.roll(-1, 1)
    y[:, -1] = -1
    y[2, 1:] = -1
    measures = ["test_accuracy", {"kind": "by_position", "held_out": True}]
    losses = []
    by_position = []
    right = []
    with dyn.Recorder(
        tmp_path / "run", model, x[:4], y[:4], test=(x[2:], y[2:]), measures=measures, every=1
    ) as recorder:
        for step in range(3):
            with torch.no_grad():
                h = copy.deepcopy(model).double()(x).transpose(1, 2)
                told = (h[2:].argmax(1) == y[2:])[y[2:] >= 0]
                right.append(float(told.double().mean()))
                losses.append(float(cross_entropy(h[:4], y[:4], ignore_index=-1)))
                at = [cross_entropy(h[2:, :, t], y[2:, t], ignore_index=-1) for t in range(5)]
                by_position.append([float(loss) for loss in at])
            if step == 2:
                break
            loss = cross_entropy(model(x[:4]).transpose(1, 2), y[:4], ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recorder.step()
    run = dyn.load_run(tmp_path / "run")
    assert_allclose(run.losses, losses, rtol=1e-12)
    assert_allclose(run.measures["test_accuracy"], right, rtol=1e-12)
    assert_allclose(run.measures["by_position_loss_held_out"], by_position, rtol=1e-12)


def test_data_and_network_are_not_kept(recorded):
    run = dyn.load_run(recorded)
    for call in (run.dataset, lambda: run.network(0), lambda: dyn.train(run.config)):
        with pytest.raises(
            DynError, match="is not kept: a training loop outside of dyn made the run"
        ):
            call()


@pytest.mark.parametrize(
    "saved_at", [0, 3, 4, 11], ids=["at first", "two before a record", "one before", "between"]
)
def test_a_killed_loop_goes_on_with_the_same_bits(tmp_path, saved_at):
    whole = Loop()
    with whole.recorder(tmp_path / "whole") as recorder:
        whole.train(22, recorder)
    killed = Loop()
    recorder = killed.recorder(tmp_path / "killed")
    file = io.BytesIO()
    killed.train(saved_at, recorder)
    states = {"model": killed.model, "optimizer": killed.optimizer, "recorder": recorder}
    torch.save(
        {name: one.state_dict() for name, one in states.items()}
        | {"random": torch.get_rng_state()},
        file,
    )
    killed.train(18, recorder)
    recorder._open.close()  # as the end of a process drops the lock
    assert dyn.load_run(tmp_path / "killed").snapshot_iterations.tolist() == [0, 5, 7, 10, 15]

    file.seek(0)
    again = Loop()
    saved = torch.load(file, weights_only=True)
    again.model.load_state_dict(saved["model"])
    again.optimizer.load_state_dict(saved["optimizer"])
    again.done = saved_at
    with again.recorder(tmp_path / "killed") as recorder:
        recorder.load_state_dict(saved["recorder"])
        torch.set_rng_state(saved["random"])
        again.train(22, recorder)
    assert arrays_of(tmp_path / "killed") == arrays_of(tmp_path / "whole")
    run = dyn.load_run(tmp_path / "killed")
    assert (run.status, run.iterations, len(run.info["resumptions"])) == ("complete", 22, 1)


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt(), "interrupted"), (ValueError("odd"), "failed"), (None, "diverged")],
)
def test_how_the_loop_ended_is_kept(tmp_path, error, status):
    loop = Loop()
    with (
        suppress(KeyboardInterrupt, ValueError),
        loop.recorder(tmp_path / "run", measures=["train_loss"]) as recorder,
    ):
        loop.train(6, recorder)
        if error is not None:
            raise error
        nn.init.constant_(loop.model[5].weight, torch.inf)
    run = dyn.load_run(tmp_path / "run")
    assert (run.status, run.iterations, len(run.losses)) == (status, 6, 3 if error is None else 2)
    assert run.info["messages"] == (["ValueError: odd"] if status == "failed" else [])


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (4, [0, 4, 8, 9]),
        ([2, 5, 40], [0, 2, 5, 9]),
        ({"kind": "geometric", "ratio": 2}, [0, 1, 3, 7, 9]),
    ],
)
def test_states_are_recorded_at_the_times_asked_for(tmp_path, every, expected):
    loop = Loop()
    with loop.recorder(
        tmp_path / "run", every=every, measures=["weight_norm"], parameters="all"
    ) as recorder:
        loop.train(9, recorder)
    run = dyn.load_run(tmp_path / "run")
    assert run.snapshot_iterations.tolist() == run.loss_iterations.tolist() == expected
    assert list(run.measures) == ["weight_norm", "lr", "batch_loss"]
    assert list(run.parameters) == [name for name, _ in loop.model.named_parameters()]


def test_a_loss_of_model_and_batch_gives_the_same_run(tmp_path):
    options = {
        "measures": ["sharpness", "distance"],
        "parameters": "all",
        "every": 2,
    }
    for name, batch, loss in (
        ("usual", (X, Y), "cross_entropy"),
        (
            "batch",
            ({"x": X, "y": Y},),
            lambda model, batch: cross_entropy(model(batch["x"]), batch["y"]),
        ),
    ):
        loop = Loop()
        with dyn.Recorder(tmp_path / name, loop.model, *batch, loss=loss, **options) as recorder:
            loop.train(4, recorder)
    usual = dyn.load_run(tmp_path / "usual")
    given = dyn.load_run(tmp_path / "batch")
    assert_allclose(given.losses, usual.losses, rtol=1e-12)
    for name in options["measures"]:
        assert_allclose(given.measures[name], usual.measures[name], rtol=1e-9)
    assert_array_equal(given.parameters["5.weight"], usual.parameters["5.weight"])


def test_notes_mark_curves_and_pages(tmp_path):
    loop = Loop()
    recorder = loop.recorder(tmp_path / "run")
    loop.train(3, recorder)
    recorder.note("lr 5$ to 2$")
    state = loop.train(5, recorder) and recorder.state_dict()
    recorder.note("lost: behind the state from which the run goes on")
    recorder._open.close()
    again = loop.recorder(tmp_path / "run")
    with pytest.raises(UsageError, match="unfinished"):
        again.note("too early")
    again.load_state_dict(state)
    with again:
        loop.train(8, again)
        again.note("decay off")
        with pytest.raises(UsageError, match="line of text"):
            again.note("two\nlines")
    run = dyn.load_run(tmp_path / "run")
    marks = [(3, "lr 5$ to 2$"), (8, "decay off")]
    assert marks_of(run) == marks
    view = View(run)
    for name in ("loss", "measures"):
        for chart in PANELS[name].charts_of(view):
            assert chart.marks == marks
    assert dyn.picture(run, y="loss").charts[0].marks == marks
    dyn.plot(run, "loss")
    page = dyn.page(run).html()
    assert "decay off" in page
    with pytest.raises(UsageError, match="closed"):
        again.note("too late")


def _steps_of(directory):
    with Loop().recorder(directory, every=1) as recorder:
        recorder.step()


def _unfinished(directory):
    loop = Loop()
    recorder = loop.recorder(directory)
    state = loop.train(5, recorder) and recorder.state_dict()
    recorder._open.close()
    return state


REFUSED = {
    "complete": (
        lambda run: (_steps_of(run), _steps_of(run)),
        "holds a run that has ended: force=True starts over",
    ),
    "in use": (
        lambda run: (Loop().recorder(run), Loop().recorder(run)),
        "is in use by another process",
    ),
    "unfinished": (
        lambda run: (_unfinished(run), _steps_of(run)),
        "an unfinished run: load_state_dict.. continues",
    ),
    "other record": (
        lambda run: Loop().recorder(_unfinished(run) and run, every=6).load_state_dict({}),
        "with other measures",
    ),
    "nothing there": (
        lambda run: Loop().recorder(run).load_state_dict({}),
        "holds no unfinished run",
    ),
    "closed": (
        lambda run: (one := Loop().recorder(run), one.close(), one.step()),
        "holds a run that was closed",
    ),
    "a name twice": (
        lambda run: Loop().recorder(run, scalars={"sharpness": float}),
        "'sharpness' is the name of two",
    ),
    "no such weight": (
        lambda run: Loop().recorder(run, parameters=["w"]),
        "parameters: the model has no weight 'w'",
    ),
    "no such schedule": (
        lambda run: Loop().recorder(run, every={"kind": "evry"}),
        "no kind of snapshots 'evry'",
    ),
    "a negative interval": (
        lambda run: Loop().recorder(run, every=-1),
        "record.snapshots.interval",
    ),
    "a part of an interval": (
        lambda run: Loop().recorder(run, every=1.5),
        "record.snapshots.interval: must be an integer, not 1.5",
    ),
    "not of a recorder": (
        lambda run: (_trained(run), Loop().recorder(run)),
        "holds a run that no recorder wrote",
    ),
    "no such measure": (
        lambda run: Loop().recorder(run, measures=["sharpnes"]),
        "did you mean 'sharpness'",
    ),
}


CHANGED = {
    "other data": (lambda: (X + 1, Y), {}, "was recorded with other data: go on with these"),
    "fewer data": (lambda: (X[:9], Y[:9]), {}, "dataset.n 24 .now 9., other data"),
    "other labels": (lambda: (X, (Y + 1) % 3), {}, "other data"),
    "another loss": (
        lambda: (X, Y),
        {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)},
        "loss.kind cross_entropy .now recorded.",
    ),
    "another seed": (lambda: (X, Y), {"seed": 5}, "seed 4 .now 5."),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_run_does_not_go_on_with_something_else(tmp_path, case):
    data, options, told = CHANGED[case]
    state = _unfinished(tmp_path / "run")
    loop = Loop()
    kept = arrays_of(tmp_path / "run")
    settings = {"optimizer": loop.optimizer, "measures": MEASURES, "every": 5, "seed": 4}
    settings |= {"parameters": ["5.weight"], **options}
    recorder = dyn.Recorder(tmp_path / "run", loop.model, *data(), **settings)
    with pytest.raises(DynError, match=told) as error:
        recorder.load_state_dict(state)
    recorder.close()
    assert "\n" not in str(error.value)
    assert arrays_of(tmp_path / "run") == kept


def test_a_run_does_not_go_on_with_another_optimizer_or_network(tmp_path):
    state = _unfinished(tmp_path / "run")
    faster = Loop()
    faster.optimizer = torch.optim.SGD(faster.model.parameters(), lr=0.9, momentum=0.9)
    wider = Loop()
    wider.model[5] = nn.Linear(8, 4)
    for loop, told in ((faster, "optimizer.lr 0.1 .now 0.9."), (wider, "architecture.weights")):
        with loop.recorder(tmp_path / "run") as recorder:
            with pytest.raises(DynError, match=told):
                recorder.load_state_dict(state)
            recorder.close()


class Gated(nn.Module):
    """Samples mix behind two gates, which are closed at first."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 3)
        self.gates = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.layer(x.flatten(1))
        return h + self.gates.prod() * h.softmax(0)


def _mixing_later(directory):
    model = Gated()
    with dyn.Recorder(directory, model, X, Y, measures=["train_loss"], every=1) as recorder:
        recorder.step()
        nn.init.constant_(model.gates, 0.5)
        recorder.step()


def _unfrozen(directory):
    loop = Loop()
    loop.model[0].requires_grad_(False)
    asked = {"measures": [{"kind": "hessian_trace", "blocks": "layer"}], "optimizer": None}
    with loop.recorder(directory, every=1, **asked) as recorder:
        loop.model.requires_grad_(True)
        recorder.step()


def _widened(directory):
    loop = Loop()
    with loop.recorder(directory, every=1) as recorder:
        loop.model[5] = nn.Linear(8, 4)
        recorder.step()


REFUSED_LATER = {
    "samples that mix": (_mixing_later, "the model mixes samples"),
    "numbers by layer": (
        _unfrozen,
        r"numbers \(6,\), before \(4,\), since other weights are trained",
    ),
    "other weights": (_widened, "other weights than the model at first.*: 5.bias, 5.weight"),
}


@pytest.mark.filterwarnings("ignore:weights without requires_grad")
@pytest.mark.parametrize("case", REFUSED_LATER)
def test_what_becomes_wrong_later_is_refused_in_one_line(tmp_path, case):
    call, told = REFUSED_LATER[case]
    with pytest.raises(DynError, match=told) as error:
        call(tmp_path / "run")
    assert "\n" not in str(error.value)
    assert dyn.load_run(tmp_path / "run").status == "failed"


def test_counts_of_a_loss_of_model_and_batch_follow_its_weights(tmp_path):
    weights = torch.tensor([0.2, 1.0, 4.0])

    def loss(model, batch):
        h = model(batch["x"])
        summed = cross_entropy(h, batch["y"], weight=weights.to(h), reduction="sum")
        return summed, weights[batch["y"]].sum()

    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    batch = {"x": X, "y": Y % 2 + (Y == 2)}
    asked = {"loss": loss, "measures": ["gradient_norm"], "every": 1}
    with dyn.Recorder(tmp_path / "run", model, batch, **asked) as recorder:
        weights *= torch.tensor([3.0, 0.5, 0.1])
        recorder.step()
    run = dyn.load_run(tmp_path / "run")
    expected = cross_entropy(model(X), batch["y"], weight=weights)
    slopes = torch.autograd.grad(expected, list(model.parameters()))
    norm = torch.cat([slope.flatten() for slope in slopes]).norm()
    assert run.losses[1] == pytest.approx(expected.item(), rel=1e-5)
    assert run.measures["gradient_norm"][1] == pytest.approx(norm.item(), rel=1e-5)


def _trained(directory):
    dyn.train(TWO_POINTS, out=directory, overrides=["optimizer.iterations=1"])


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_one_line(tmp_path, case):
    call, told = REFUSED[case]
    with pytest.raises(DynError, match=told) as error:
        call(tmp_path / "run")
    assert "\n" not in str(error.value)
