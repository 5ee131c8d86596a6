"""`tg.summary`: the table of layers, and that it leaves module and generators as they were."""

import random
import threading

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import hooks


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
        self.drop = nn.Dropout(0.5)
        self.act = nn.Tanh()
        self.again = self.act
        self.lazy = nn.LazyLinear(16)
        self.rnn = nn.LSTM(16, 8, batch_first=True)
        self.head = nn.Linear(8, 4)
        self.head.weight.requires_grad_(False)
        self.seen, self.count = [], 0

    def forward(self, x, scale=1.0):
        self.seen.append(x.shape)
        self.count += 1
        self.last = x
        h = self.again(self.act(self.drop(self.lazy(self.body(x)))) * scale)
        out, state = self.rnn(h[:, None])
        random.random()
        np.random.rand()
        return {"y": self.head(out), "state": state, "rest": None}


def by_name(made):
    return {layer.name: layer for layer in made.layers}


def test_layers_have_class_shapes_parameters_and_bytes():
    made = tg.summary(Net(), tg.zeros(2, 3, 8, 8))
    found = by_name(made)
    assert list(found) == [
        "", "body", "body.0", "body.1", "body.2", "body.3", "drop", "act", "again", "lazy", "rnn", "head",
    ]  # fmt: skip
    assert found[""].shapes == ((2, 1, 4), (1, 2, 8), (1, 2, 8)) and found[""].depth == 0
    assert found["body.0"][1:] == ("Conv2d", 2, ((2, 8, 8, 8),), 1, 224, 224, 896, None)
    assert (found["body.1"].parameters, found["body.1"].nbytes) == (16, 16 * 4 + 16 * 4 + 8)  # with its statistics
    assert found["body"].parameters == 0 and found["rnn"].parameters == 4 * 8 * (16 + 8 + 2)
    assert (found["head"].parameters, found["head"].trainable) == (36, 4)
    assert (found["act"].calls, found["act"].same_as, found["again"].same_as) == (2, None, "act")
    assert (found["lazy"].kind, found["lazy"].parameters) == ("Linear", 512 * 16 + 16)
    assert made.parameters == 224 + 16 + 8208 + 832 + 36 and made.parameters - made.trainable == 32
    assert made.nbytes == sum([layer.nbytes for layer in made.layers]) and made.input_bytes == 2 * 3 * 64 * 4
    sizes = {
        "body.0": 1024,
        "body.1": 1024,
        "body.2": 1024,
        "body.3": 1024,
        "lazy": 32,
        "drop": 32,
        "act": 64,
        "rnn": 48,
        "head": 8,
    }
    assert made.output_bytes == 4 * sum(sizes.values())


def everything(net):
    """All of a module's state, by identity where that counts."""
    return [
        (
            type(m), m.training, {k: id(v) for k, v in vars(m).items()},
            [(k, list(v), list(map(id, v.values()))) for k, v in vars(m).items() if isinstance(v, dict)],
            [t.detach().clone().numpy().tobytes() for t in m._buffers.values() if t is not None],
        )
        for m in net.modules()
    ]  # fmt: skip


@pytest.mark.parametrize("fails", [False, True])
def test_module_and_generators_stay_as_they_were(fails):
    net = Net()
    net.body[1].train(False)
    before, streams = everything(net), (tg.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist())
    tables = {name: dict(v) for name, v in hooks.EVERYWHERE.items() if isinstance(v, dict)}
    tape = len(tg.tape())
    if fails:
        with pytest.raises(RuntimeError):
            tg.summary(net, tg.zeros(2, 4, 8, 8))
    else:
        tg.summary(net, tg.zeros(2, 3, 8, 8))
    assert everything(net) == before and net.seen == [] and net.count == 0 and not hasattr(net, "last")
    assert streams == (tg.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist())
    assert tables == {name: dict(v) for name, v in hooks.EVERYWHERE.items() if isinstance(v, dict)}
    assert len(tg.tape()) == tape and isinstance(net.lazy, nn.LazyLinear) and tg.is_grad_enabled()
    net(tg.zeros(2, 3, 8, 8))  # the lazy layer still takes its size from the first call
    assert net.lazy.weight.shape == (16, 512)


def test_hooks_of_the_module_run_and_stay():
    net, calls = nn.Linear(2, 3), []
    net.register_forward_hook(lambda module, args, out: calls.append(out.shape))
    tg.summary(net, tg.zeros(1, 2))
    net(tg.zeros(1, 2))
    assert len(calls) == 2 and len(net._forward_hooks) == 1


def test_batch_norm_keeps_its_statistics_and_takes_a_single_sample():
    norm = nn.BatchNorm1d(3)
    made = tg.summary(norm, tg.ones(1, 3))
    assert norm.training and norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0.0] * 3
    assert made.layers[0].shapes == ((1, 3),)


def test_shared_parameters_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.embed(i))

    made = tg.summary(Tied(), tg.tensor([1, 2]))
    assert made.parameters == 20 and [layer.parameters for layer in made.layers] == [0, 20, 0]


def test_keywords_sizes_and_no_inputs():
    net = Net()
    assert tg.summary(net, tg.zeros(2, 3, 8, 8), scale=0.5).layers[0].calls == 1
    assert by_name(tg.summary(net, input_size=(2, 3, 8, 8)))["rnn"].shapes == ((2, 1, 8), (1, 2, 8), (1, 2, 8))
    two = tg.summary(nn.Bilinear(2, 3, 4), input_size=[(5, 2), (5, 3)])
    assert two.layers[0].shapes == ((5, 4),) and two.input_bytes == 100
    none = tg.summary(net)
    assert net.count == 0 and none.layers[0].shapes == () and none.parameters == 224 + 16 + 832 + 36
    assert "inputs:" not in str(none)


def test_wrong_arguments_say_what_is_meant():
    with pytest.raises(TypeError, match=r"write input_size=\(1, 3, 8, 8\), with the batch"):
        tg.summary(Net(), (3, 8, 8))
    with pytest.raises(TypeError, match="a module, not Tensor"):
        tg.summary(tg.ones(3), tg.ones(3))


def test_calls_in_other_threads_are_not_counted():
    class Waiting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            thread = threading.Thread(target=self.inner, args=(x,))
            thread.start()
            thread.join()
            return self.inner(x)

    assert [layer.calls for layer in tg.summary(Waiting(), tg.ones(1, 2)).layers] == [1, 1]


def test_the_table_as_text_and_html():
    made = tg.summary(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), tg.ones(2, 3))
    assert str(made) == (
        "layer       class       output  parameters  trainable  bytes\n"
        "------------------------------------------------------------\n"
        "Sequential  Sequential  [2, 4]\n"
        "  0         Linear      [2, 4]          16         16   64 B\n"
        "  1         Tanh        [2, 4]\n"
        "------------------------------------------------------------\n"
        "parameters: 16, of which 16 trainable, 64 B with buffers\n"
        "inputs: 24 B, outputs of layers: 64 B"
    )
    assert "<td" in made._repr_html_()
