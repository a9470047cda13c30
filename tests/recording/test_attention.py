"""Measures of attention, by hand, however a network computes attention."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import dynamics_cli as dyn
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Problem, Streams
from dynamics_cli.recording.attention import samples_first, watched_attention
from dynamics_cli.runs.run import columns_of
from tests.cases import config_of

OF = ("entropy", "previous", "first", "induction")
MEASURES = [{"kind": "attention", "of": of} for of in OF]
n = 6
T = 7
X = torch.tensor(np.random.default_rng(0).integers(3, size=(n, T)))
X[0] = torch.arange(T) % 3  # which repeats itself


def by_hand(attention, x, there=None):
    """Return the four numbers of each head (4, H) of weights (n, H, T, T), one after the other;
    queries and tokens of padding, which are not `there` (n, T), do not count.
    """
    numbers = []
    for head in attention.swapaxes(0, 1):
        told = {of: [] for of in OF}
        for k, (a, s) in enumerate(zip(head, x, strict=True)):
            real = np.ones(len(s), bool) if there is None else there[k]
            first = np.flatnonzero(real)[0]
            for t in np.flatnonzero(real & ~np.isnan(a).any(1)):
                told["entropy"].append(-sum(w * np.log(w) for w in a[t] if w))
                if t and real[t - 1]:
                    told["previous"].append(a[t, t - 1])
                if t > first:
                    told["first"].append(a[t, first])
                if behind := [a[t, j + 1] for j in range(t) if s[j] == s[t]]:
                    told["induction"].append(sum(behind))
        numbers.append([np.mean(told[of]) for of in OF])
    return np.transpose(numbers)


def measured(model, **options):
    y = torch.arange(n) % 3
    (row,) = dyn.measure(model, X, y, measures=MEASURES, **options)
    count = (len(row) - 1) // 4
    return np.array([[row[f"attention_{of}.{k + 1}"] for k in range(count)] for of in OF])


@pytest.mark.parametrize("needs_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_multi_head_attention_of_torch(batch_first, needs_weights):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(3, 4)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=batch_first)
            self.readout = nn.Linear(4, 3)

        def told(self, x, **options):
            r = self.embedding(x)
            if not batch_first:
                r = r.transpose(0, 1)
            return self.attention(r, r, r, **options)

        def forward(self, x):
            mixed = self.told(x, need_weights=needs_weights)[0]
            return self.readout(mixed.mean(1 if batch_first else 0))

    torch.manual_seed(0)
    model = Model().double()
    _, weights = model.told(X, average_attn_weights=False)
    assert_allclose(measured(model), by_hand(weights.detach().numpy(), X.numpy()), rtol=1e-10)


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"need_weights": False}])
def test_a_network_gets_the_attention_that_it_asks_for(options):
    attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    r = torch.randn(n, T, 4)
    _, expected = attention(r, r, r, **options)
    with watched_attention(lambda _: None):
        _, found = attention(r, r, r, **options)
    if expected is None:
        assert found is None
    else:
        assert_allclose(found, expected.detach(), rtol=1e-5)


@pytest.mark.parametrize(
    ("keys", "initialization"),
    [
        ({"kind": "transformer"}, "lecun"),
        ({"kind": "gpt", "dropout": 0.1, "positions": "rotary"}, "as_built"),
    ],
)
def test_a_transformer_in_a_run_and_by_dyn_measure(keys, initialization, tmp_path):
    config = config_of(
        dataset={"kind": "markov_chains", "length": T, "symbols": 3, "n": n},
        architecture={
            **keys,
            "tokens": T,
            "width": 4,
            "heads": 2,
            "layers": 2,
            "outputs": 3,
            "predict": "every",
        },
        initialization={"kind": initialization},
        loss={"kind": "cross_entropy"},
        record={"measures": [*MEASURES, {"kind": "by_position", "bins": [1, 3]}]},
    )
    run = dyn.train(config, out=tmp_path / "run")
    names = [column.name for column in columns_of(run, "attention_entropy")]
    assert names == [f"attention_entropy.{label}" for label in ("1.1", "1.2", "2.1", "2.2")]
    names = [column.name for column in columns_of(run, "by_position_loss")]
    assert names == ["by_position_loss.1-2", "by_position_loss.3-"]
    data = run.config.dataset.samples(Streams(run.config.seed))
    model = run.config.architecture.build(data.d).double().eval()
    model.load_state_dict({name: torch.tensor(w[-1]) for name, w in run.parameters.items()})
    seen = []
    with watched_attention(seen.append):
        model(torch.tensor(data.x))
    symbols = data.x.reshape(n, T, 3).argmax(-1)
    expected = by_hand(torch.cat(seen, 1).numpy(), symbols)
    for of, numbers in zip(OF, expected, strict=True):
        assert_allclose(run.measures[f"attention_{of}"][-1], numbers, rtol=1e-9)
    table = dyn.measure(
        model,
        torch.tensor(data.x),
        torch.tensor(data.y).long(),
        measures=[*MEASURES, {"kind": "by_position", "bins": [1, 3]}],
    )
    for name, (numbers,) in table.arrays.items():
        assert_allclose(numbers, run.measures[name][-1], rtol=1e-9, err_msg=name)


class Padded(nn.Module):
    """Causal attention of two heads that does not see padding, in one of several layouts; of the
    way "causal" it sees padding.
    """

    def __init__(self, by, layout="samples first"):
        super().__init__()
        torch.manual_seed(0)
        self.by = by
        self.layout = layout
        self.root = 3.0 if by == "causal" else 2.0
        self.embedding = nn.Embedding(5, 8)
        self.queries = nn.Linear(8, 8)
        self.head = nn.Linear(4, 2)

    def parts(self, tokens):
        """Return queries, keys (n, 2, T, 4) and which keys a query sees (n, 1, T, T)."""
        h = self.embedding(tokens)
        q, k = (z.unflatten(-1, (2, 4)).transpose(1, 2) for z in (self.queries(h), h))
        later = torch.ones(*q.shape[-2:-1], q.shape[-2], dtype=torch.bool).triu(1)
        hidden = later | (tokens == 0)[:, None] & (self.by != "causal")
        return q, k, ~hidden[:, None]

    def attention(self, tokens):
        """Return attention (n, 2, T, T) by hand."""
        q, k, sees = self.parts(tokens)
        return (q @ k.mT / self.root).masked_fill(~sees, -torch.inf).softmax(-1)

    def forward(self, tokens, mask=None):
        q, k, sees = self.parts(tokens)
        if self.by == "sdpa":
            mixed = scaled_dot_product_attention(q, k, k, attn_mask=sees)
        elif self.by == "causal":
            mixed = scaled_dot_product_attention(q, k, k, is_causal=True, scale=1 / self.root)
        else:
            scores = (q @ k.mT / 2).masked_fill(~sees, -torch.inf)
            if self.layout == "heads first":
                weights = scores.transpose(0, 1).softmax(-1).transpose(0, 1)
            elif self.layout == "heads of a sample":
                weights = scores.flatten(0, 1).softmax(-1).unflatten(0, (-1, 2))
            elif self.layout == "samples of a head":
                weights = scores.transpose(0, 1).flatten(0, 1).softmax(-1)
                weights = weights.unflatten(0, (2, -1)).transpose(0, 1)
            else:
                weights = scores.softmax(-1)
            mixed = weights.nan_to_num() @ k
        return self.head(mixed.sum((1, 2)))


LEFT = torch.tensor([[0, 0, 0, 1, 2], [0, 0, 3, 1, 3], [2, 1, 4, 2, 1], [0, 0, 0, 4, 4]])
RIGHT = torch.tensor([[3, 1, 1, 0, 0], [2, 1, 0, 0, 0], [4, 3, 4, 2, 1], [1, 2, 1, 2, 0]])


LAYOUTS = ("samples first", "heads first", "heads of a sample", "samples of a head")


@pytest.mark.parametrize("rows", [100, 3], ids=["at once", "in blocks"])
@pytest.mark.parametrize("tokens", [LEFT, RIGHT, LEFT[:2]], ids=["left", "right", "two samples"])
@pytest.mark.parametrize("by", ["sdpa", "causal", *LAYOUTS])
def test_padding_and_heads_in_other_layouts(by, tokens, rows, monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    model = Padded(by, by)
    inputs = {"tokens": tokens, "mask": tokens != 0}
    for padding in ({}, {"padding": 0}, {"padding": "mask"}):
        measures = [{**asked, **padding} for asked in MEASURES]
        (row,) = dyn.measure(model, inputs, tokens[:, -1] % 2, measures=measures)
        found = [[row[f"attention_{of}.{k}"] for k in (1, 2)] for of in OF]
        there = (tokens != 0).numpy() if padding else None
        attention = model.double().attention(tokens).detach().numpy()
        assert_allclose(found, by_hand(attention, tokens.numpy(), there), rtol=1e-10)


def test_padding_that_is_not_there_is_refused():
    y = LEFT[:, -1] % 2
    for inputs, told in (
        (LEFT, "inputs by name have no 'mask': none"),
        ({"tokens": LEFT}, "no 'mask': tokens"),
        (
            {"tokens": LEFT, "mask": LEFT[:, 1:]},
            r"mask has \(4,\) numbers a sample, .* 5 positions",
        ),
    ):
        with pytest.raises(InputError, match=told):
            dyn.measure(
                Padded("sdpa"), inputs, y, measures=[{"kind": "attention", "padding": "mask"}]
            )


def test_attention_that_all_samples_share():
    weights = torch.rand(2, 3, 3)
    shared = samples_first(weights, weights, 4)
    assert shared.shape == (4, 2, 3, 3)
    assert torch.equal(shared[3], weights)
    with pytest.raises(InputError, match="have no axis of samples"):
        samples_first(torch.rand(4, 4, 3, 3), torch.rand(1, 2, 3, 3), 4)


def test_nothing_watches_after_the_end():
    seen = []
    scores = torch.zeros(1, 2, T, T)
    with watched_attention(seen.append):
        scores.softmax(-1)
        torch.softmax(scores, dim=1)
        scores[..., :2].softmax(-1)
    scores.softmax(-1)
    assert len(seen) == 1


def test_induction_needs_symbols():
    class Real(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(2, 1, 3, batch_first=True)

        def forward(self, x):
            return self.layer(x)[:, -1]

    with pytest.raises(InputError, match="inputs at positions are no symbols"):
        dyn.measure(Real(), torch.randn(3, 4, 2), torch.arange(3) % 2, measures=MEASURES)
    with pytest.raises(InputError, match="needs a single network with attention"):
        dyn.measure(nn.Linear(2, 2), torch.randn(3, 2), torch.arange(3) % 2, measures=MEASURES)
