"""Reference counts mean what `refcount.py` says, on this interpreter.

Needs no NumPy: `python tests/test_refcount.py` runs the file alone, with any Python.
"""

import ast
import importlib.util
import pathlib
import subprocess
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "tapegrad"
if sys.argv[1:2] == ["--inner"]:  # isolated: told where the package is
    PACKAGE = pathlib.Path(sys.argv[2])
elif not PACKAGE.exists():  # the tests of an installed package
    PACKAGE = pathlib.Path(importlib.util.find_spec("tapegrad").origin).parent
spec = importlib.util.spec_from_file_location("refcount", PACKAGE / "refcount.py")
refcount = importlib.util.module_from_spec(spec)
spec.loader.exec_module(refcount)
getrefcount = sys.getrefcount

# One that counts otherwise has to be looked at: do the places still see a difference?
NEWER = sys.version_info >= (3, 14)
NAMES = (
    "POPPED_SLOT", "LISTED_SLOT", "UNREAD_SLOT", "ORPHAN_TAPE", "EXCLUSIVE_ARRAY", "LAST_ALIAS", "COTANGENT", "TEMPORARY",
    "RESULT", "STATE_ARRAY",
)  # fmt: skip
AS_LOOKED_AT = (2, 3, 3, 3, 2, 2, 2, refcount.NEVER, 1, 2) if NEWER else (3, 4, 3, 4, 2, 3, 3, 2, 2, 3)  # 3.14; 3.11 to 3.13
COUNTS = {f"REFS_{name}": n for name, n in zip(NAMES, AS_LOOKED_AT, strict=True)}


class Tensor:
    __slots__ = ("_d", "_s")


class Alias:
    __slots__ = ("store",)


def new_slot():
    return int("9" * 12)


def popped(slots):
    alone = False
    while slots:
        s = slots.pop()
        alone = getrefcount(s) <= refcount.REFS_POPPED_SLOT
    return alone


def listed(order):
    alone = False
    for s in order:
        alone = getrefcount(s) <= refcount.REFS_LISTED_SLOT
    return alone


def accumulated_in_place(cot):
    p = cot.get(0)
    return getrefcount(p) <= refcount.REFS_COTANGENT


def is_temporary(d):
    return getrefcount(d) <= refcount.REFS_TEMPORARY


def unread(t):
    return getrefcount(t._s) <= refcount.REFS_UNREAD_SLOT


def exclusive(t):
    return getrefcount(t._d) <= refcount.REFS_EXCLUSIVE_ARRAY


def last_alias(a):
    store = a.store
    return getrefcount(store) <= refcount.REFS_LAST_ALIAS


def donated(t):
    v = Tensor._d.__get__(t)
    return getrefcount(v) <= refcount.REFS_STATE_ARRAY


def orphaned(tapes):
    gone = [t for t in tuple(tapes)]
    return [n <= refcount.REFS_ORPHAN_TAPE for n in refcount.counts(gone)]


def stored_elsewhere(leaves):
    """The check of a traced function's results: each is in the list of leaves and in what the function returned."""
    stored = False
    for leaf in leaves:
        stored = getrefcount(leaf) > refcount.REFS_RESULT + 2
    return stored


def test_counts_are_those_of_the_interpreters_that_were_looked_at():
    assert {name: n for name, n in vars(refcount).items() if name.startswith("REFS_")} == COUNTS


def test_an_entry_is_dead_only_where_nothing_refers_to_its_slot():
    tape = {new_slot(): None}
    assert popped(list(tape))
    assert listed(list(tape))
    t = Tensor()
    t._s = new_slot()
    tape = {t._s: None}
    assert not popped(list(tape))
    assert not listed(list(tape))
    tape = {new_slot(): None}
    reader = (7, *tape)
    assert not popped(list(tape))
    assert not listed(list(tape))
    del reader
    assert popped(list(tape))


def test_a_slot_that_a_calling_function_holds_is_alive():
    s = new_slot()
    tape = {s: None}
    assert not popped(list(tape))
    assert not listed(list(tape))


def test_small_integers_are_shared_and_the_first_slot_is_not():
    assert getrefcount(0) > 100
    assert getrefcount(int(str(2**20))) < 4


def test_an_unread_slot_has_its_tensor_and_its_entry():
    t = Tensor()
    t._s = new_slot()
    tape = {t._s: None}
    assert unread(t)
    reader = (7, *tape)
    assert not unread(t)
    del reader
    assert unread(t)


def test_an_array_is_exclusive_only_where_its_tensor_alone_refers_to_it():
    t = Tensor()
    t._d = object()
    assert exclusive(t)
    assert donated(t)
    entry = (7, t._d)
    assert not exclusive(t)
    assert not donated(t)
    del entry
    user = t._d
    assert not exclusive(t)
    assert not donated(t)
    del user
    assert exclusive(t)


def test_a_block_has_one_reference_more_for_each_holder_than_its_version():
    if refcount.WHY_NOT:
        return  # all objects count as held

    class Store:
        __slots__ = ("root", "ver")

    def is_held():
        return refcount.is_more_referenced(store.root, store.ver)

    store, alias, t = Store(), Alias(), Tensor()
    store.root, store.ver = object(), object()
    assert not is_held()
    t._d, alias.store = store.root, store.ver  # an alias refers to the version, its tensor to the block
    assert not is_held()
    entry = (7, t._d)
    assert is_held()
    del entry
    assert not is_held()


def test_the_last_alias_of_a_store():
    a, b = Alias(), Alias()
    a.store = object()
    assert last_alias(a)
    b.store = a.store
    assert not last_alias(a)


def test_a_cotangent_is_added_to_in_place_only_where_the_table_alone_refers_to_it():
    cot = {0: object()}
    assert accumulated_in_place(cot)
    g = cot[0]
    assert not accumulated_in_place(cot)
    cot[1] = g
    del g
    assert not accumulated_in_place(cot)


def test_a_cotangent_that_a_calling_function_was_handed_is_not_its_own():
    def backward(g, cot):
        cot[0] = g
        return accumulated_in_place(cot)

    g = object()
    assert not backward(g, {})
    assert not backward(object(), {})


def test_a_temporary_is_what_no_caller_holds():
    def rule(x):
        return x

    d = object()
    entry = (7, object())
    unheld = is_temporary(object()), is_temporary(rule(object()))  # pytest would hold the arguments of an assertion
    assert unheld == (not NEWER, not NEWER)  # there an argument that the caller holds does not show, so that none is taken
    assert not is_temporary(d)
    assert not is_temporary(rule(d))
    assert not is_temporary(entry[1])


def test_an_orphan_is_in_the_two_lists_only():
    if refcount.WHY_NOT:
        return  # all objects count as held

    tapes = [object(), object()]
    context = tapes[1]
    assert orphaned(tapes) == [True, False]
    del context
    assert orphaned(tapes) == [True, True]


def test_a_result_that_is_also_stored_elsewhere_shows():
    result = [object()]
    assert not stored_elsewhere(list(result))
    stored = [result[0]]
    assert stored_elsewhere(list(result))
    stored.clear()
    assert not stored_elsewhere(list(result))


def test_every_count_is_compared_with_a_name_of_refcount():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "refcount.py" or "getrefcount" not in text:
            continue
        compared = set()
        nodes = list(ast.walk(ast.parse(text)))
        for node in nodes:
            if isinstance(node, ast.Compare):
                names = [n.id for n in ast.walk(node.comparators[0]) if isinstance(n, ast.Name)]
                if any(name in COUNTS for name in names):
                    compared.add(id(node.left))
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "getrefcount":
                assert id(node) in compared, f"{path}:{node.lineno}"


def test_this_file_runs_without_numpy():
    command = [sys.executable, "-I", "-S", __file__, "--inner", str(PACKAGE)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and not (name.endswith("without_numpy") and "--inner" in sys.argv):
            test()
    print(f"reference counts: Python {sys.version.split()[0]} counts as expected")
