"""Values that are saved and never read: the backward asks them for nothing but their sizes.

Which arguments are such is a table of ops, each held by a test that runs the op with that argument full of NaN. A
value also counts where all that is computed from it in the backward counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from aotcli.analysis.layers import SavedTensor, layer_pattern
from aotcli.analysis.lint._chain import find_chain
from aotcli.analysis.lint._contract import Hit, Rule, Subject, tensor_hit
from aotcli.analysis.lint._region import PlannedRegion
from aotcli.analysis.op_names import op_label
from aotcli.ir.finding import Remedy
from aotcli.ir.joint import Node, NodeKind, Ref, Tag, arg_refs

_CONVOLUTION_BACKWARD = "aten.convolution_backward"
UNREAD_ARGUMENTS: dict[str, int] = {
    **dict.fromkeys(("aten.zeros_like", "aten.ones_like", "aten.full_like", "aten.empty_like"), 0),
    **dict.fromkeys(("aten.rand_like", "aten.randn_like"), 0),
    **dict.fromkeys(
        ("aten.new_zeros", "aten.new_ones", "aten.new_full", "aten.new_empty", "aten.new_empty_strided"), 0
    ),
    **dict.fromkeys(("aten.sym_size", "aten.sym_numel", "aten.sym_stride", "aten.sym_storage_offset"), 0),
    **dict.fromkeys(("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward"), 1),
    **dict.fromkeys(("aten.avg_pool2d_backward", "aten.avg_pool3d_backward"), 1),
    **dict.fromkeys(("aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool3d_backward"), 1),
    **dict.fromkeys(("aten.adaptive_max_pool2d_backward", "aten.adaptive_max_pool3d_backward"), 1),
    **{f"aten.{kind}_pad{n}d_backward": 1 for kind in ("reflection", "replication") for n in (1, 2, 3)},
    **dict.fromkeys(("aten.nll_loss_backward", "aten.nll_loss2d_backward"), 1),
}
"""Op, and the position of the argument that it only asks for its size, dtype and device."""


class ShapeOnly(Rule):
    """See the module's docstring."""

    code: ClassVar[str] = "AOT005"
    name: ClassVar[str] = "saved for its shape"
    summary: ClassVar[str] = "a saved value of which the backward uses only the sizes"
    rank: ClassVar[int] = 1

    def find(self, subject: Subject) -> Iterator[Hit]:
        for region in subject.regions:
            if not region.tensors:
                continue
            read = _values_read(region)
            for tensor in region.tensors:
                if not any(value.name in read for value in tensor.values):
                    yield _hit(region, tensor)


def unread(node: Node, position: int) -> bool:
    """Whether an op asks the argument at `position` for nothing but its size, dtype and device."""
    if node.packet == _CONVOLUTION_BACKWARD:
        # The input is read for the weight's gradient, the weight for the input's.
        mask = node.args[-1]
        return isinstance(mask, tuple) and position in (1, 2) and len(mask) == 3 and not mask[2 - position]
    return UNREAD_ARGUMENTS.get(node.packet) == position


def _values_read(region: PlannedRegion) -> frozenset[str]:
    """Names of the values whose elements the backward needs."""
    needed = {name for arg in region.backward.outputs for name in arg_refs(arg)}
    for node in reversed(region.backward.nodes):
        if node.name in needed or not _passes_on(node):
            needed.update(_read_by(node))
    return frozenset(needed)


def _passes_on(node: Node) -> bool:
    """Whether an op is only there for its results, so that it needs no elements where nobody needs its own."""
    return node.kind is NodeKind.OP and Tag.EFFECTFUL not in node.tags and Tag.IMPURE not in node.tags


def _read_by(node: Node) -> Iterator[str]:
    for position, arg in enumerate(node.args):
        if not (isinstance(arg, Ref) and unread(node, position)):
            yield from arg_refs(arg)
    for _, arg in node.kwargs:
        yield from arg_refs(arg)


def _hit(region: PlannedRegion, tensor: SavedTensor) -> Hit:
    reader = _reader(region, tensor)
    label = "the backward"
    if reader is not None:
        label = op_label(reader.target) + (f" of {layer_pattern(reader.module)}" if reader.module else "")
    detail = f"{label} reads its sizes and none of its elements"
    return tensor_hit(region, tensor, tensor.nbytes, detail, _remedy(reader), find_chain(region, tensor))


def _reader(region: PlannedRegion, tensor: SavedTensor) -> Node | None:
    """The op that asks for the sizes, seen through what passes them on."""
    pending = [node for value in tensor.values for node in region.readers.get(value.name, ())]
    seen = {node.name for node in pending}
    for node in pending:
        if node.packet in UNREAD_ARGUMENTS or node.packet == _CONVOLUTION_BACKWARD:
            return node
        fresh = [user for user in region.readers.get(node.name, ()) if user.name not in seen]
        seen.update(user.name for user in fresh)
        pending += fresh
    return None


def _remedy(reader: Node | None) -> Remedy:
    keep = "ctx.shape = x.shape  # forward"
    if reader is not None and reader.packet == _CONVOLUTION_BACKWARD:
        return Remedy(
            "the layer's weight is frozen: put it into an autograd.Function that keeps the shape alone",
            (keep, "torch.nn.grad.conv2d_input(ctx.shape, weight, grad, stride, padding)  # backward"),
        )
    calls = reader is not None and reader.packet.endswith("_backward")
    return Remedy(
        "put it into an autograd.Function that keeps the shape, and hand its backward any tensor of that shape",
        (
            keep,
            "x = grad.new_empty(()).expand(ctx.shape)  # backward",
            *([f"torch.ops.{reader.packet}(grad, x, ...)"] if reader is not None and calls else []),
        ),
    )
