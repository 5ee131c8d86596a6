"""torch.utils._pytree: nested tuples, lists and dicts to a flat list of leaves and back. None is a leaf."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tapegrad.dtypes import Size
from tapegrad.func.tree import REGISTERED

Context = PyTree = Any


@dataclass(frozen=True)
class MappingKey:
    """Where a leaf is in a dict."""

    key: Any


@dataclass(frozen=True)
class SequenceKey:
    """Where a leaf is in a tuple or list."""

    idx: int


@dataclass(frozen=True)
class GetAttrKey:
    """Where a leaf is in an object."""

    name: str


@dataclass
class TreeSpec:
    """The structure of a tree: the container's type, what else is needed to build it, and its children."""

    type: Any
    context: Any
    children_specs: list = field(default_factory=list)

    @property
    def num_leaves(self) -> int:
        """How many leaves a tree of this structure has."""
        return 1 if self.is_leaf() else sum(c.num_leaves for c in self.children_specs)

    num_nodes = property(lambda self: 1 + sum(c.num_nodes for c in self.children_specs))
    num_children = property(lambda self: len(self.children_specs))

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return self.type is None


PyTreeSpec = TreeSpec


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return TreeSpec(None, None)


def is_namedtuple_class(cls: type) -> bool:
    """Whether it was made by namedtuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple(obj: object) -> bool:
    """Whether its class was made by namedtuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


is_namedtuple_instance = is_namedtuple


def _dict_flatten(d: dict) -> tuple:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Any, keys: Any) -> dict:
    return dict(zip(keys, values, strict=True))


def _list_flatten(x: list) -> tuple:
    return list(x), None


def _list_flatten_with_keys(x: list) -> tuple:
    return [(SequenceKey(i), value) for i, value in enumerate(x)], None


def _list_unflatten(values: Any, context: None) -> list:
    return list(values)


_of_dict = _dict_flatten, _dict_unflatten
_of_tuple = (lambda t: (list(t), None)), (lambda values, _: tuple(values))
_NODES: dict = {
    tuple: _of_tuple,
    Size: _of_tuple,
    list: (_list_flatten, _list_unflatten),
    dict: _of_dict,
    OrderedDict: (_of_dict[0], lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
    defaultdict: (
        lambda d: (list(d.values()), (d.default_factory, list(d))),
        lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    ),
    deque: (lambda d: (list(d), d.maxlen), lambda values, maxlen: deque(values, maxlen=maxlen)),
    namedtuple: (lambda t: (list(t), type(t)), lambda values, kind: kind(*values)),
}


class NodeDef(NamedTuple):
    """How objects of a class are taken apart and built."""

    flatten_fn: Any
    unflatten_fn: Any


SUPPORTED_NODES = _NODES = {kind: NodeDef(*pair) for kind, pair in _NODES.items()}


def register_pytree_node(cls: type, flatten_fn: Any, unflatten_fn: Any, **kwargs: object) -> None:
    """Have objects of a class taken apart.

    Args:
        flatten_fn: of an object, (children, context).
        unflatten_fn: of (children, context), the object.
    """
    if cls in _NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    REGISTERED[cls] = _NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _kind(tree: object) -> Any:
    return namedtuple if type(tree) not in _NODES and is_namedtuple_class(type(tree)) else type(tree)


_get_node_type = _kind


def tree_is_leaf(tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether it is not taken apart."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) not in _NODES


_is_leaf = tree_is_leaf


def tree_flatten(tree: PyTree, is_leaf: Any = None) -> tuple:
    """(leaves, structure)."""
    if tree_is_leaf(tree, is_leaf):
        return [tree], LeafSpec()
    kind = _kind(tree)
    children, context = _NODES[kind][0](tree)
    parts = [tree_flatten(c, is_leaf) for c in children]
    return [leaf for leaves, _ in parts for leaf in leaves], TreeSpec(kind, context, [spec for _, spec in parts])


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> PyTree:
    """The tree of a structure with the given leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    return _built(iter(leaves), treespec)


def _built(leaves: Any, spec: TreeSpec) -> PyTree:
    if spec.is_leaf():
        return next(leaves)
    return _NODES[spec.type][1]([_built(leaves, c) for c in spec.children_specs], spec.context)


def tree_leaves(tree: PyTree, is_leaf: Any = None) -> list:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: Any = None) -> Any:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: Any = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Any, tree: PyTree, *rests: PyTree, is_leaf: Any = None) -> PyTree:
    """The tree with func applied to every leaf, and to those of further trees at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [_up_to(spec, r) for r in rests]
    return tree_unflatten([func(*args) for args in zip(leaves, *others, strict=True)], spec)


def _up_to(spec: TreeSpec, tree: PyTree) -> list:
    if spec.is_leaf():
        return [tree]
    if _kind(tree) is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children = _NODES[spec.type][0](tree)[0]
    if len(children) != len(spec.children_specs):
        raise ValueError(f"Node arity mismatch; expected {len(spec.children_specs)}, but got {len(children)}.")
    return [leaf for c, child in zip(spec.children_specs, children, strict=True) for leaf in _up_to(c, child)]


def tree_map_(func: Any, tree: PyTree, *rests: PyTree, is_leaf: Any = None) -> PyTree:
    """Call func with every leaf; gives the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(type_or_types: Any) -> Any:
    chosen = (
        type_or_types if callable(type_or_types) and not isinstance(type_or_types, type) else
        lambda x: isinstance(x, type_or_types)
    )  # fmt: skip
    return chosen


def tree_map_only(type_or_types_or_pred: Any, func: Any, tree: PyTree, is_leaf: Any = None) -> PyTree:
    """The tree with func applied to the leaves of a type."""
    chosen = _only(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Any, tree: PyTree, is_leaf: Any = None) -> PyTree:
    """Call func with the leaves of a type; gives the tree itself."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Any, tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether pred holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Any, tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Any, tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether pred holds for all leaves of a type."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, pred: Any, tree: PyTree, is_leaf: Any = None) -> bool:
    """Whether pred holds for a leaf of a type."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: Any = None) -> list | None:
    """The leaves of a tree whose leaves stand for whole branches of treespec, one a leaf of it; None if it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    own = tree_structure(tree, lambda t: t is not tree)
    if (own.type, own.context, own.num_children) != (treespec.type, treespec.context, treespec.num_children):
        return None
    children = tree_leaves(tree, lambda t: t is not tree)
    found = [_broadcast_to_and_flatten(*pair, is_leaf) for pair in zip(children, treespec.children_specs, strict=True)]
    return None if None in found else [leaf for leaves in found for leaf in leaves]


def is_structseq_instance(obj: object) -> bool:
    """Whether it is a tuple with names of C's kind, as time.gmtime() is."""
    return isinstance(obj, tuple) and hasattr(type(obj), "n_sequence_fields")
