"""What a config must satisfy beyond each single value: within a section and across sections."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from dynamics_cli.config.architecture import (
    ConvolutionalArchitecture,
    FullyConnectedArchitecture,
    GanArchitecture,
    ResidualArchitecture,
    TwoLayerArchitecture,
    Vgg16Architecture,
)
from dynamics_cli.config.dataset import (
    FileDataset,
    GaussiansDataset,
    LinearTeacherDataset,
    MixtureDataset,
    MnistDataset,
    MnistPairDataset,
    OrthonormalDataset,
    PointsDataset,
)
from dynamics_cli.config.errors import Path
from dynamics_cli.config.initialization import (
    BalancedInitialization,
    DefaultScaledInitialization,
    DominatedInitialization,
    FileInitialization,
    ScaledInitialization,
    ValuesInitialization,
)
from dynamics_cli.config.loss import CrossEntropyLoss, ExponentialLoss, HingeLoss, LogisticLoss
from dynamics_cli.config.modes import check_modes
from dynamics_cli.config.optimizer import Adam, GradientFlow, MinibatchSection
from dynamics_cli.config.run import RunConfig

Sections = Mapping[str, object]
"""Validated sections by name; a section that is itself wrong is not among them."""
Finding = tuple[Path, str]

MarginLoss = LogisticLoss | ExponentialLoss | HingeLoss
ManyOutputs = FullyConnectedArchitecture | ConvolutionalArchitecture | Vgg16Architecture
OneOutput = TwoLayerArchitecture | ResidualArchitecture


def check_sections(sections: Sections) -> Iterator[Finding]:
    """Yield where and why the given sections do not make sense, alone or together."""
    for check in (
        _points,
        _orthonormal,
        _gaussians,
        _dataset_file,
        _mnist,
        _slope,
        _length,
        _spacing,
        _outputs,
        _labels,
        _initialization,
        check_modes,
        _adversaries,
    ):
        yield from check(sections)


def check_config(config: RunConfig) -> Iterator[Finding]:
    """Yield what is wrong with a config built in Python, which `load_config` would have refused."""
    yield from check_sections({name: getattr(config, name) for name in RunConfig.model_fields})


def _points(sections: Sections) -> Iterator[Finding]:
    dataset = sections.get("dataset")
    if not isinstance(dataset, PointsDataset):
        return
    yield from _matrix("x", dataset.x, len(dataset.x[0]), "the first")
    yield from _same_length("y", dataset.y, "x", dataset.x)
    if dataset.x_test is not None:
        yield from _matrix("x_test", dataset.x_test, len(dataset.x[0]), "those of x")
    if dataset.x_test is not None and dataset.y_test is not None:
        yield from _same_length("y_test", dataset.y_test, "x_test", dataset.x_test)
    elif dataset.x_test is not None:
        yield ("dataset", "y_test"), "is missing; x_test needs labels"
    elif dataset.y_test is not None:
        yield ("dataset", "x_test"), "is missing; y_test needs inputs"


def _matrix(key: str, rows: Sequence[Sequence[float]], columns: int, like: str) -> Iterator[Finding]:
    for place, row in enumerate(rows):
        if len(row) != columns:
            yield ("dataset", key, place), f"has {_count(len(row), 'coordinate')}, {like} {columns}; all need the same"
            return


def _same_length(key: str, labels: Sequence[float], inputs_key: str, inputs: Sequence[object]) -> Iterator[Finding]:
    if len(labels) != len(inputs):
        samples, values = _count(len(inputs), "sample"), _count(len(labels), "label")
        yield ("dataset", key), f"has {values}, but {inputs_key} has {samples}; there must be one label per sample"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _orthonormal(sections: Sections) -> Iterator[Finding]:
    dataset = sections.get("dataset")
    if not isinstance(dataset, OrthonormalDataset):
        return
    if dataset.n > dataset.dim:
        yield ("dataset", "n"), f"must be at most dim = {dataset.dim}, not {dataset.n}: no more vectors are orthonormal"
    if dataset.y is not None and len(dataset.y) != dataset.n:
        labels = _count(len(dataset.y), "label")
        yield ("dataset", "y"), f"has {labels}, but n is {dataset.n}; there must be one label per sample"


def _gaussians(sections: Sections) -> Iterator[Finding]:
    dataset, loss = sections.get("dataset"), sections.get("loss")
    if isinstance(loss, CrossEntropyLoss) and isinstance(dataset, GaussiansDataset | LinearTeacherDataset):
        yield ("dataset", "kind"), f"{dataset.kind} has labels ±1, which do not suit the loss cross_entropy"
    if not isinstance(dataset, GaussiansDataset):
        return
    dim = dataset.dim or len(dataset.mean)
    if dim < len(dataset.mean):
        yield ("dataset", "dim"), f"must be at least {len(dataset.mean)}, the coordinates of mean, not {dim}"
    if not any(dataset.mean):
        yield ("dataset", "mean"), "must not be 0: both classes would be in one place"
    yield from _matrix("outliers", dataset.outliers or [], dim, "the mean")


def _dataset_file(sections: Sections) -> Iterator[Finding]:
    dataset = sections.get("dataset")
    if not isinstance(dataset, FileDataset):
        return
    for key, file in (("path", dataset.path), ("test_path", dataset.test_path)):
        if file is not None and os.path.splitext(file)[1].lower() not in (".npz", ".csv"):  # noqa: PTH122
            yield ("dataset", key), f"must name a .npz or a .csv file, not {file!r}"
    if dataset.test_path is not None and dataset.test_fraction is not None:
        yield ("dataset", "test_fraction"), "cannot be given together with test_path"


def _mnist(sections: Sections) -> Iterator[Finding]:
    dataset, loss = sections.get("dataset"), sections.get("loss")
    if not isinstance(dataset, MnistDataset | MnistPairDataset):
        return
    if dataset.test_per_class is not None and not dataset.test:
        yield ("dataset", "test_per_class"), "makes no sense with test: false"
    if isinstance(dataset, MnistDataset):
        if isinstance(loss, MarginLoss):
            yield ("dataset", "kind"), f"mnist has ten classes, the loss {loss.kind} tells two apart: take mnist_pair"
        elif isinstance(loss, CrossEntropyLoss) and 1 < getattr(sections.get("architecture"), "outputs", 10) < 10:
            yield ("architecture", "outputs"), "must be at least 10, the number of digits"
        return
    if dataset.digits[0] == dataset.digits[1]:
        yield ("dataset", "digits"), f"must be two different digits, not {dataset.digits[0]} twice"
    if dataset.labels == "classes" and isinstance(loss, MarginLoss):
        yield ("dataset", "labels"), f"must be signs for the loss {loss.kind}, not classes"
    if dataset.labels == "signs" and isinstance(loss, CrossEntropyLoss):
        yield ("dataset", "labels"), "must be classes for the loss cross_entropy, not signs"


def _slope(sections: Sections) -> Iterator[Finding]:
    architecture = sections.get("architecture")
    if not isinstance(architecture, TwoLayerArchitecture | FullyConnectedArchitecture):
        return
    if architecture.activation == "leaky_relu" and architecture.slope is None:
        yield ("architecture", "slope"), "is missing; leaky_relu needs a number >= 0"
    if architecture.activation != "leaky_relu" and architecture.slope is not None:
        yield ("architecture", "slope"), f"belongs to activation leaky_relu, not to {architecture.activation}"


def _length(sections: Sections) -> Iterator[Finding]:
    optimizer = sections.get("optimizer")
    if not isinstance(optimizer, MinibatchSection):
        return
    if optimizer.iterations is None and optimizer.epochs is None:
        yield ("optimizer", "iterations"), "is missing; exactly one of iterations and epochs must be given"
    if optimizer.iterations is not None and optimizer.epochs is not None:
        yield ("optimizer", "epochs"), "exactly one of iterations and epochs must be given, not both"
    if isinstance(optimizer, Adam) and optimizer.replacement and optimizer.batch_size is None:
        yield ("optimizer", "replacement"), "needs a batch_size: a full batch is not drawn"


def _spacing(sections: Sections) -> Iterator[Finding]:
    optimizer = sections.get("optimizer")
    if not isinstance(optimizer, GradientFlow):
        return
    if optimizer.spacing == "geometric" and optimizer.first is None:
        yield ("optimizer", "first"), "is missing; geometric spacing needs the time of the first point"
    if optimizer.spacing == "uniform" and optimizer.first is not None:
        yield ("optimizer", "first"), "belongs to spacing geometric, not to uniform"
    if optimizer.first is not None and optimizer.first >= optimizer.until:
        yield ("optimizer", "first"), f"must be below until = {optimizer.until:g}, not {optimizer.first:g}"


def _outputs(sections: Sections) -> Iterator[Finding]:
    architecture, loss = sections.get("architecture"), sections.get("loss")
    if loss is None:
        return
    many = isinstance(loss, CrossEntropyLoss)
    if many and isinstance(architecture, OneOutput):
        needs = "cross_entropy needs architecture.kind fully_connected, convolutional or vgg16 with outputs >= 2"
        yield ("loss", "kind"), f"{needs}; {architecture.kind} has one output"
    if not isinstance(architecture, ManyOutputs):
        return
    if many and architecture.outputs == 1:
        yield ("architecture", "outputs"), "must be the number of classes, >= 2, for the loss cross_entropy, not 1"
    if not many and architecture.outputs > 1:
        kind = getattr(loss, "kind", "")
        yield ("architecture", "outputs"), f"must be 1 for the loss {kind}, not {architecture.outputs}"


def _labels(sections: Sections) -> Iterator[Finding]:
    dataset, loss = sections.get("dataset"), sections.get("loss")
    if not isinstance(loss, CrossEntropyLoss | MarginLoss):
        return
    if isinstance(dataset, OrthonormalDataset) and dataset.y is None:
        yield ("dataset", "y"), f"is missing; Gaussian labels do not suit the loss {loss.kind}"
    if not isinstance(dataset, PointsDataset | OrthonormalDataset):
        return
    allowed, names = _allowed_labels(loss, sections.get("architecture"))
    for key in ("y", "y_test"):
        for place, label in enumerate(getattr(dataset, key, None) or ()):
            # as an integer: a number with a point would be compared with every member of a range
            if label != int(label) or not (int(label) in allowed if allowed is not None else label >= 0):
                yield ("dataset", key, place), f"must be {names} for the loss {loss.kind}, not {label:g}"
                break


def _allowed_labels(loss: object, architecture: object) -> tuple[Sequence[int] | None, str]:
    if not isinstance(loss, CrossEntropyLoss):
        return (-1, 1), "-1 or 1"
    if isinstance(architecture, ManyOutputs) and architecture.outputs > 1:
        return range(architecture.outputs), f"a class, one of the integers 0 to {architecture.outputs - 1}"
    return None, "a class, an integer >= 0"


def _initialization(sections: Sections) -> Iterator[Finding]:
    initialization, architecture = sections.get("initialization"), sections.get("architecture")
    if isinstance(initialization, ValuesInitialization) and isinstance(architecture, TwoLayerArchitecture):
        for key in ("hidden_weight", "output_weight"):
            rows = len(getattr(initialization, key))
            if rows != architecture.width:
                yield ("initialization", key), f"has {rows} entries, architecture.width is {architecture.width}"
    if architecture is None or isinstance(architecture, TwoLayerArchitecture):
        return
    if isinstance(initialization, ValuesInitialization):
        yield ("initialization", "kind"), "values needs architecture.kind two_layer"
    if isinstance(initialization, BalancedInitialization | DominatedInitialization):
        yield ("initialization", "kind"), f"{initialization.kind} needs architecture.kind two_layer"
    if isinstance(initialization, ScaledInitialization) and initialization.output_value is not None:
        yield ("initialization", "output_value"), "needs architecture.kind two_layer"


def _adversaries(sections: Sections) -> Iterator[Finding]:
    """Yield what two networks trained against each other need: real points, a loss of classifiers, Adam in batches."""
    architecture, dataset, loss = (sections.get(name) for name in ("architecture", "dataset", "loss"))
    optimizer, initialization = sections.get("optimizer"), sections.get("initialization")
    if (
        isinstance(dataset, MixtureDataset)
        and dataset.layout == "grid"
        and int(dataset.modes**0.5) ** 2 != dataset.modes
    ):
        yield ("dataset", "modes"), f"must be a square number for the layout grid, not {dataset.modes}"
    if not isinstance(architecture, GanArchitecture):
        return
    if dataset is not None and not isinstance(dataset, MixtureDataset):
        yield ("dataset", "kind"), "must be mixture for architecture.kind gan"
    if loss is not None and not isinstance(loss, LogisticLoss | HingeLoss):
        yield (
            ("loss", "kind"),
            "must be logistic (cross-entropy of the discriminator) or hinge for architecture.kind gan",
        )
    if optimizer is not None and not (isinstance(optimizer, Adam) and optimizer.batch_size is not None):
        yield ("optimizer", "kind"), "must be adam with a batch_size for architecture.kind gan"
    if initialization is not None and not isinstance(initialization, DefaultScaledInitialization | FileInitialization):
        yield ("initialization", "kind"), "must be default_scaled or file for architecture.kind gan"
