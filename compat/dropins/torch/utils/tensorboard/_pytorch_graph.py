"""What SummaryWriter.add_graph writes: the recorded graph of a module, with its layers as scopes that open and close."""

from torch.utils._pytree import tree_leaves

import tapegrad


def graph(model, args, verbose=False, use_strict_trace=True):
    """The graph of a call of the module in evaluation mode, for TensorBoard, and empty metadata of its run.

    Args:
        model: the module.
        args: its input, or a tuple of inputs.
        verbose: print the graph, too, in graphviz's language.
        use_strict_trace: PyTorch's; changes nothing.
    """
    from tensorboardX.proto.graph_pb2 import GraphDef
    from tensorboardX.proto.versions_pb2 import VersionDef

    inputs = [_tracked(x) for x in (args if isinstance(args, tuple | list) else (args,))]
    named = {f"input.{i}": x for i, x in enumerate(inputs, 1) if isinstance(x, tapegrad.Tensor) and x.requires_grad}
    named.update(model.named_parameters())
    training = [m for m in model.modules() if m.training]
    model.eval()
    try:
        with tapegrad.enable_grad():
            drawing = tapegrad.viz.graph(lambda: _tensors(model(*inputs)), params=named, limit=None)
    finally:
        for module in training:
            module.training = True
    if verbose:
        print(drawing.dot)
    return GraphDef(node=_nodes(drawing), versions=VersionDef(producer=22)), VersionDef()


def _tracked(x):
    """An input of which operations on it are recorded, if it is of floats."""
    floats = isinstance(x, tapegrad.Tensor) and (x.is_floating_point() or x.is_complex())
    return x.detach().requires_grad_() if floats else x


def _tensors(output):
    return [t for t in tree_leaves(output) if isinstance(t, tapegrad.Tensor)]


def _nodes(drawing):
    """The nodes of a drawing as messages, their groups in their names, as in Sequential/Linear[0]/AddmmBackward0_3."""
    from tensorboardX.proto.attr_value_pb2 import AttrValue
    from tensorboardX.proto.node_def_pb2 import NodeDef
    from tensorboardX.proto.tensor_shape_pb2 import TensorShapeProto

    scopes = _scopes(drawing.groups)
    scope_of = {k: scope for scope, group in zip(scopes, drawing.groups, strict=True) for k in group.members}
    outside = {"leaf": ["leaves"], "output": ["outputs"]}
    names = []
    for k, node in enumerate(drawing.nodes):
        title = node.title if node.kind == "leaf" else f"{node.title}_{k}"
        names.append("/".join([*scope_of.get(k, outside.get(node.kind, [])), title]))
    sources = [[] for _ in names]
    for a, b in drawing.edges:
        sources[b].append(names[a])
    messages = []
    for node, name, read in zip(drawing.nodes, names, sources, strict=True):
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape]) for shape in node.shapes]
        attributes = {
            "attr": AttrValue(s=", ".join(node.lines).encode()),
            "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes)),
        }
        op = node.title if node.kind == "operation" else node.kind
        messages.append(NodeDef(name=name, op=op, input=read, attr=attributes))
    return messages


def _scopes(groups):
    """The names of the groups around the members of each; a module that is called again has a number behind its name."""
    scopes, used = [], set()
    for group in groups:
        name, _, kind = group.title.rpartition(": ")
        own = f"{kind}[{name}]" if name else kind
        scope = [*(scopes[group.parent] if group.parent is not None else []), own]
        again = 1
        while tuple(scope) in used:
            again += 1
            scope[-1] = f"{own}_{again}"
        used.add(tuple(scope))
        scopes.append(scope)
    return scopes
