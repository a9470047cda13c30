"""Commands that are refused: exit code, message, and that nothing is written."""

import os
import shlex

import click
import pytest
from click.testing import CliRunner

from dynamics_cli.cli.arguments import json_option, quiet_option
from dynamics_cli.datasets.files.tables import read_samples
from dynamics_cli.errors import InputError
from dynamics_cli.waiting import tell
from tests.runs.damage import contents

MOST = "a sweep has at most 1000000"
WHICH_FIGURES = "say which figures: figures, papers, or --all (`dyn list figures`)"
WHAT_TO_CHECK = "say what to check: runs, figures' JSON files, or --all"
NO_CONFIG = "there is no such file, nor a bundled config of this name"
CSV = "'dataset={kind: file, path: "
REFUSED = [  # command, exit code, a part of the message
    ("trian", 2, "No such command 'trian'. Did you mean 'train'?"),
    ("list figure", 2, "No such command 'figure'. Did you mean 'figures'?"),
    ("train", 2, "Missing argument 'CONFIG'"),
    ("train toy.yaml --sed 1", 2, "No such option"),
    (
        "train toy.yaml --widht 5",
        2,
        "Error: No such option '--widht' (did you mean `--set architecture.width=...`?)\n",
    ),
    (
        "train toy.yaml --out ''",
        2,
        "Invalid value for '--out': it is empty: name a file or a folder",
    ),
    ("reproduce boursier2022-fig2 --out ''", 2, "it is empty: name a file or a folder"),
    ("train toy.yaml --device gpu", 2, "'gpu' is not one of 'auto', 'cpu', 'cuda'"),
    ("train toy.yaml --seed -1", 2, "-1 is not in the range x>=0"),
    (
        "train toy.yaml --resume --force",
        2,
        "--resume continues a run and --force starts over; give one of them",
    ),
    (
        "sweep toy.yaml --grid optimizer.lr",
        2,
        "--grid 'optimizer.lr=' must have the form key=v1,v2,... or",
    ),
    ("sweep toy.yaml --grid optimizer.rl=1,2", 3, "optimizer.rl: unknown key"),
    (
        "sweep toy.yaml --grid architecture.width=5:80:log:6",
        3,
        "; use logint: architecture.width=5:80:logint:6\n",
    ),
    ("train examples/lazy", 3, "sweep: describes many runs: `dyn sweep examples/lazy` trains them"),
    (f"train toy.yaml --set {CSV}no.csv}}'", 3, "--set: dataset.path: there is no file "),
    (
        f"train toy.yaml --set {CSV}data.csv}}'",
        3,
        "data.csv:2: column 2 holds 'four', not a",
    ),
    (f"train toy.yaml --set {CSV}bad.npz}}'", 3, "bad.npz: not a readable .npz file of plain"),
    (f"train toy.yaml --seed {2**63}", 3, "--seed: must be < 9223372036854775808, not 9"),
    ("train toy.yaml --set backend=autgrad", 3, "--set: backend: must be "),
    ("train no.yaml", 3, NO_CONFIG),
    ("train tooy.yaml", 3, f"{NO_CONFIG} (did you mean 'toy.yaml'?)"),
    ("train boursier2022/orthogonl", 3, "(did you mean 'boursier2022/orthogonal'?)"),
    ("train .", 3, ".: is a directory, not a config file"),
    ("train toy.yaml --set record.limit_gib=0.000001", 3, "the recording needs about 0.0 GiB"),
    ("train toy.yaml --set record.measures=[weight_nrm]", 3, "unknown kind 'weight_nrm'"),
    ("train toy.yaml --set record.parameters=[bias]", 3, "no parameter 'bias'; this network has"),
    ("train toy.yaml --out toy.yaml", 2, "toy.yaml is a file, not a directory; give --out"),
    (
        "train toy.yaml --out toy.yaml/run",
        7,
        "cannot be made (Not a directory); give --out",
    ),
    ("train toy.yaml --out /proc/no/run", 7, "cannot be made (No such file or directory); give"),
    ("sweep toy.yaml --seeds 0", 2, "0 is not in the range x>=1"),
    (f"sweep toy.yaml --seeds {10**12}", 2, MOST),
    ("sweep toy.yaml --shard 4/3", 2, "--shard '4/3' must have the form K/N with K from 1 to N"),
    ("config check toy.yaml --set seed=-1", 3, "--set: seed: must be >= 0, not -1\n"),
    (
        "config check toy.yaml --set loss.kind=mine",
        3,
        "; `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads",
    ),
    ("explain los", 2, "no section or kind 'los' (did you mean 'loss'?)"),
    (
        "list runs --status completed",
        2,
        (
            "no status 'completed' (did you mean 'complete'?); there are running, "
            "complete, interrupted, diverged, failed, damaged\n"
        ),
    ),
    (
        "list figures --paper boursier2023",
        2,
        "no paper 'boursier2023' (did you mean 'boursier2022'?); `dyn list papers` lists them\n",
    ),
    (
        "show nothing",
        3,
        "there is no such file, nor a bundled config of this name; nor is it a run or a sweep\n",
    ),
    (
        "plot toy.yaml --list",
        2,
        "Error: toy.yaml describes a picture; panels are of runs and sweeps\n",
    ),
    ("verify", 2, WHAT_TO_CHECK),
    ("verify --all here", 2, WHAT_TO_CHECK),
    (
        "verify nothing",
        7,
        "Error: there is no run nothing, neither as a path nor below outputs/runs",
    ),
    ("reproduce", 2, WHICH_FIGURES),
    ("reproduce boursier2022-fig1 --all", 2, WHICH_FIGURES),
    (
        "reproduce --all --variant flwo",
        2,
        "no figure asked for has a variant 'flwo' (`dyn list figures`)",
    ),
    (
        "reproduce boursier2022-fig5 --variant flow",
        2,
        "Error: boursier2022-fig5 has no variant 'flow'; it has none\n",
    ),
    (
        "reproduce boursier2022-fig4 --variant flwo",
        2,
        "Error: boursier2022-fig4 has no variant 'flwo' (did you mean 'flow'?); it has flow\n",
    ),
    (
        "reproduce boursier2022-fgi2",
        2,
        "Error: no figure 'boursier2022-fgi2' (did you mean 'boursier2022-fig2'?)",
    ),
    (
        "reproduce mine2026-fig2",
        2,
        "no figure 'mine2026-fig2' (did you mean 'min2024-fig2'?); `dyn list figures`",
    ),
    (
        "page nothing",
        7,
        (
            "Error: there is no run nothing, neither as a path nor below outputs/runs; nor is it a"
            " sweep"
        ),
    ),
    (
        "reproduce boursier2022-fig1 fig3",
        2,
        "Error: no figure 'fig3'; `dyn list figures` lists them",
    ),
    ("reproduce boursir2022", 2, "Error: no figure 'boursir2022' (did you mean 'boursier2022'?)"),
    (
        "reproduce boursier2022-fig3 --set optimizer.lrr=1",
        3,
        "--set: optimizer.lrr: unknown key of kind 'gd'",
    ),
    (f"reproduce boursier2022-fig5 --seeds {10**12}", 2, "not in the range"),
    ("data fetch mnst", 2, "'mnst' is not one of 'mnist', 'cifar10'"),
    ("data fetch dogs-vs-cats", 2, "'dogs-vs-cats' is not one of 'mnist', 'cifar10'"),
    ("data add mnist nowhere", 2, "Path 'nowhere' does not exist"),
    ("data add mnist .", 3, ": holds no train-images-idx3-ubyte or train-images-idx3-ubyte.gz"),
]
# the same, where the run `here` is, and a folder `empty`
WITH_A_RUN = [
    (
        "plot here --panel los",
        2,
        "Error: no panel 'los' (did you mean 'loss'?); this run offers loss, ",
    ),
    ("plot here --panel loss --panel measures", 2, "Error: this run has no panel 'measures': "),
    (
        "plot here --panel function --log x",
        2,
        "the panel 'function' has no axes 'x' that could be logarithmic;",
    ),
    ("plot here --log z", 2, "is not one of 'x', 'y', 'xy', 'c', 'xc', 'yc', 'xyc', 'none'"),
    ("plot here --label loss", 2, "Error: --label 'loss' must have the form KEY=TEXT\n"),
    ("plot here --label los=x", 2, "Error: no 'los' to label (did you mean 'loss'?); there are "),
    ("plot here --out toy.yaml", 7, "Error: cannot write toy.yaml/loss.png: "),
    ("plot here here --at 3", 2, "at goes with a run"),
    ("show here --set seed=1", 2, "--set cannot be used with a run"),
    ("show empty", 7, "Error: empty is not a run directory (it has no run.json)\n"),
    (
        "compare here toy-1",
        7,
        "Error: there is no run toy-1, neither as a path nor below outputs/runs\n",
    ),
    (
        "train toy.yaml --out here --seed 1",
        2,
        (
            "Error: here holds a run of another config: give --out another directory, or --force to"
            " move it aside\n"
        ),
    ),
]


def test_a_pipe_is_refused_and_not_waited_for(dyn, place):
    """Nobody writes to it; a config that a shell pipes is read."""
    for name in ("p.yaml", "p.npz", "p.csv", "p.zip"):
        os.mkfifo(place / name)
    (place / "child.yaml").write_text("extends: p.yaml\n")
    for command, code in (
        ("train p.yaml", 3),
        ("config check p.yaml", 3),
        ("train child.yaml", 3),
        ("train toy.yaml --set 'dataset={kind: file, path: p.npz}'", 3),
        ("sweep toy.yaml --set dataset.kind=file --grid dataset.path=p.csv,p.npz", 3),
        ("data add cifar10 p.zip", 3),
        ("data add dogs-vs-cats p.zip", 3),
    ):
        check(dyn(*shlex.split(command)), code, "p.")
    for path in (place / "p.csv", place / "p.npz"):
        with pytest.raises(InputError, match="it is not a regular file"):
            read_samples(path)
    reader, writer = os.pipe()
    os.write(writer, (place / "toy.yaml").read_bytes())
    os.close(writer)
    assert dyn("train", f"/dev/fd/{reader}", "-q").code == 0
    os.close(reader)


def check(answer, code, told):
    assert (answer.code, answer.out) == (code, "")
    assert told in answer.err
    assert answer.err.startswith(("Usage: dyn", "Error: ")) or code == 3
    assert answer.err.startswith("Usage: dyn") or answer.err.count("\n") == 1


@pytest.mark.parametrize(("command", "code", "told"), REFUSED)
def test_refused(command, code, told, dyn, place, monkeypatch):
    monkeypatch.setenv("DYN_DATA", str(place / "home"))
    (place / "data.csv").write_text("1,2\n3,four\n")
    (place / "bad.npz").write_text("PK\3\4 no")
    before = contents(place)
    check(dyn(*shlex.split(command)), code, told)
    assert contents(place) == before


def test_refused_where_a_run_is(dyn, place):
    assert dyn("train", "toy.yaml", "--out", "here").code == 0
    (place / "empty").mkdir()
    before = contents(place)
    for command, code, told in WITH_A_RUN:
        print(command)
        check(dyn(*shlex.split(command)), code, told)
        assert contents(place) == before


@pytest.mark.parametrize(("option", "said"), [("", "about a day\n"), ("-q", ""), ("--json", "")])
def test_quiet_commands_say_nothing_of_what_takes_long(option, said):
    @click.command
    @quiet_option
    @json_option
    def long(**_options):
        tell("about a day")

    assert CliRunner().invoke(long, shlex.split(option)).stderr == said
