"""Files that cannot be read, and `extends`."""

import json

import pytest

from dynamics_cli.config import load_config

from .conftest import TEXT

NEEDED = "name, dataset, architecture, initialization, loss and optimizer"


EMPTY = f"run.yaml: is empty; needed are {NEEDED}"
NO_MAPPING = f"run.yaml:1: must be a mapping of {NEEDED}, not"
NO_PATH = "must be the path of one config file (a text), not"
MISTAKES = [  # files, the config that is loaded, what is told
    ({}, "none.yaml", ["none.yaml: there is no such file"]),
    ({}, "/no/none.yaml", ["/no/none.yaml: there is no such file"]),
    ({"configs/a": ""}, "configs", ["configs: is a directory, not a config file"]),
    *(
        ({"run.yaml": text}, "run.yaml", [EMPTY])
        for text in ("", "\n\n", "# a comment\n", "---\n", "null", "\ufeff")
    ),
    ({"run.yaml": "- a\n- b\n"}, "run.yaml", [f"{NO_MAPPING} a list of 2"]),
    ({"run.yaml": "[]"}, "run.yaml", [f"{NO_MAPPING} an empty list"]),
    ({"run.yaml": "hello"}, "run.yaml", [f"{NO_MAPPING} the text 'hello'"]),
    ({"run.yaml": "3"}, "run.yaml", [f"{NO_MAPPING} 3"]),
    (
        {
            "base/parent.yaml": TEXT.replace("lr: 1.0e-3, iterations: 20000", "lr: -1"),
            "child.yaml": "extends: base/parent.yaml\n\narchitecture: {width: 0}\n",
        },
        "child.yaml",
        [
            "child.yaml:3: architecture.width: must be >= 1, not 0",
            "base/parent.yaml:6: optimizer.lr: must be > 0, not -1",
            "base/parent.yaml:6: optimizer.iterations: is missing",
        ],
    ),
    (
        {"deep/child.yaml": "name: a\nextends: none.yaml\n"},
        "deep/child.yaml",
        [
            "deep/child.yaml:2: extends: there is no file deep/none.yaml, nor a bundled config of"
            " this name"
        ],
    ),
    (
        {"parent.yaml": "a: [1\n", "child.yaml": "extends: parent.yaml\n"},
        "child.yaml",
        [
            "parent.yaml:2: not valid YAML: while parsing a flow sequence, expected ',' or ']', but"
            " got '<stream end>'"
        ],
    ),
    (
        {"c.yaml": "name: a\nextends: [a, b]\n"},
        "c.yaml",
        [f"c.yaml:2: extends: {NO_PATH} a list of 2"],
    ),
    ({"c.yaml": "name: a\nextends:\n"}, "c.yaml", [f"c.yaml:2: extends: {NO_PATH} empty (null)"]),
    ({"c.yaml": "name: a\nextends: ''\n"}, "c.yaml", [f"c.yaml:2: extends: {NO_PATH} the text ''"]),
    (
        {"c.yaml": "extends: !!python/name:os.system\n" + TEXT},
        "c.yaml",
        [
            "c.yaml:1: extends: the YAML tag '!!python/name:os.system' is not allowed: a config"
            " holds only plain values"
        ],
    ),
    (
        {"a.yaml": "extends: b.yaml\n", "b.yaml": "extends: sub/../a.yaml\n", "sub/x": ""},
        "a.yaml",
        ["b.yaml:1: extends: extending sub/../a.yaml would go round in a circle"],
    ),
    (
        {"own.yaml": "name: x\nextends: own.yaml\n"},
        "own.yaml",
        ["own.yaml:2: extends: extending own.yaml would go round in a circle"],
    ),
    (
        {},
        {"extends": "none.yaml"},
        ["<config>: extends: there is no file none.yaml, nor a bundled config of this name"],
    ),
]


@pytest.mark.parametrize(("files", "config", "told"), MISTAKES)
def test_mistakes(files, config, told, write, problems):
    for name, text in files.items():
        write(name, text)
    assert problems(config) == told


def test_bad_utf8(problems, here):
    (here / "run.yaml").write_bytes(b"name: a\nloss: \xff\n")
    assert problems("run.yaml") == ["run.yaml:2: is not UTF-8 text (byte 0xff)"]


def test_byte_order_mark_and_windows_line_ends(base, here, write):
    text = write().read_text()
    (here / "windows.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load_config("windows.yaml") == load_config(base)


@pytest.mark.parametrize(
    "layout", [{}, {"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}]
)
def test_json_is_valid_input(layout, base, here):
    (here / "run.json").write_text(json.dumps(base, **layout))
    assert load_config("run.json") == load_config(base)


def test_extends_merges_key_by_key(write):
    write("parent.yaml")
    child = write("child.yaml", "extends: parent.yaml\nname: wide\narchitecture: {width: 600}\n")
    parent = load_config("parent.yaml")
    config = load_config(child)
    assert (config.name, config.architecture.width) == ("wide", 600)
    assert config.architecture.activation == parent.architecture.activation
    assert config == load_config("parent.yaml", ["name=wide", "architecture.width=600"])


@pytest.mark.parametrize(
    "name", ["boursier2022/orthogonal", "configs/boursier2022/orthogonal.yaml"]
)
def test_extends_takes_bundled_configs(write, name):
    from dynamics_cli._bundled import CONFIGS

    config = load_config(write("deep/child.yaml", f"extends: {name}\nseed: 7\n"))
    bundled = load_config(CONFIGS / "boursier2022" / "orthogonal.yaml")
    assert config == bundled.model_copy(update={"seed": 7})
    assert load_config({"extends": name, "seed": 7}) == config


def test_extends_replaces_lists_whole(write):
    write("parent.yaml")
    child = write(
        "child.yaml", "extends: parent.yaml\ndataset: {x: [[1], [2], [3]], y: [1, 2, 3]}\n"
    )
    assert load_config(child).dataset.x == [[1], [2], [3]]
    assert load_config(child).dataset.append_bias is True


def test_extends_chain_with_paths_relative_to_each_file(write, here):
    write("a/grandparent.yaml", dataset="dataset: {kind: file, path: d.csv}")
    write(
        "b/parent.yaml",
        "extends: ../a/grandparent.yaml\ninitialization: {kind: file, path: w.npz}\n",
    )
    child = write("child.yaml", "extends: b/parent.yaml\nseed: 3\n")
    for name in ("a/d.csv", "b/w.npz"):
        (here / name).touch()
    config = load_config(child)
    assert config.seed == 3
    assert (config.dataset.path, config.initialization.path) == (
        str(here / "a/d.csv"),
        str(here / "b/w.npz"),
    )


def test_extends_only_in_a_file(write, problems):
    assert problems(write(), "extends=a.yaml") == [
        "--set: extends: can only be written in a config file"
    ]
