"""A stand-in for requests in the record of real programs: any address gives a generated graph in Cora's format.

The archive holds ``cora/cora.content`` (paper, words, class) and ``cora/cora.cites`` (cited paper, citing paper), tab
separated, as the archive that the programs download. Papers of one class share words and mostly cite each other.
"""

import io
import os
import tarfile

import numpy as np

PAPERS = int(os.environ.get("STANDIN_PAPERS", "2708"))  # Cora's own number: the programs split at fixed indices
WORDS = int(os.environ.get("STANDIN_WORDS", "300"))
CLASSES = ("Case_Based", "Genetic_Algorithms", "Neural_Networks", "Probabilistic_Methods", "Reinforcement_Learning",
           "Rule_Learning", "Theory")  # fmt: skip


def _graph():
    """(names, words, labels, edges) of the graph; the same at every call."""
    rng = np.random.default_rng(0)
    names = rng.permutation(10 * PAPERS)[:PAPERS]
    labels = rng.integers(0, len(CLASSES), PAPERS)
    typical = rng.random((len(CLASSES), WORDS)) < 0.1
    words = rng.random((PAPERS, WORDS)) < np.where(typical[labels], 0.15, 0.03)
    pairs = rng.integers(0, PAPERS, (16 * PAPERS, 2))
    near = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (near | (rng.random(len(pairs)) < 0.03))]
    return names, words.astype(int), labels, np.unique(pairs, axis=0)[:, ::-1]


def _archive():
    names, words, labels, edges = _graph()
    rows = zip(names, words, labels, strict=True)
    content = "".join(f"{name}\t" + "\t".join(map(str, row)) + f"\t{CLASSES[label]}\n" for name, row, label in rows)
    cites = "".join(f"{names[a]}\t{names[b]}\n" for a, b in edges)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in (("cora/cora.content", content), ("cora/cora.cites", cites)):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    file.seek(0)
    return file


class Response:
    """What get returns: usable in a with block, the bytes in ``raw`` and ``content``."""

    status_code = 200
    ok = True

    def __init__(self, raw):
        self.raw = raw

    @property
    def content(self):
        return self.raw.getvalue()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.raw.close()


def get(url, stream=False, **options):
    """The archive, whatever the address."""
    return Response(_archive())
