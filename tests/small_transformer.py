"""A transformer's joint graph by hand, in variants: what a diff is asked to compare, with the truth known.

Nodes are named by what they are (``h.3.attn.softmax``), so that two nodes of two variants are one exactly when they
have one name. Tests take the names away (`graph_edits.scrambled`) before they ask for a pairing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graph_builder import GraphBuilder

from aotcli.ir.joint import JointGraph, Ref


@dataclass(frozen=True)
class Variant:
    """`layers` are the blocks that there are; `renumbered` gives their modules the numbers that a ModuleList would.

    `attention` is "fused" or "by hand", `norm` "fused" or "by hand" (one op or five), `inserted` an op after every
    block's first addition, `prefix` the path of the module that holds the model; `flat` leaves all modules out.
    """

    layers: tuple[int, ...] = tuple(range(12))
    renumbered: bool = False
    activation: str = "gelu"
    attention: str = "fused"
    norm: str = "fused"
    inserted: str | None = None
    dtype: str = "float32"
    batch: int = 2
    prefix: str = ""
    flat: bool = False


def transformer(variant: Variant = Variant()) -> JointGraph:
    return _Transformer(variant).build()


WIDTH, SEQ, VOCAB = 16, 8, 32


class _Transformer:
    def __init__(self, variant: Variant) -> None:
        self._v = variant
        self._g = GraphBuilder(level="aten")
        self._rows = variant.batch * SEQ
        self._module: dict[str, Any] = {}
        self._stem = ""
        self._grads: dict[str, Ref] = {}
        self._params: dict[str, Ref] = {}
        self._backward = False

    # One op, one parameter, one module.

    def _enter(self, path: str, kind: str, *, backward: bool) -> None:
        """What follows belongs to module `path` (``h.3.ln1``; numbers are those of the variant's layers)."""
        self._stem = path
        self._backward = backward
        shown = None if self._v.flat else self._path(path)
        self._module = {"module": shown, "module_type": None if self._v.flat else kind}

    def _path(self, path: str) -> str:
        parts = path.split(".")
        if self._v.renumbered and parts[0] == "h":
            parts[1] = str(self._v.layers.index(int(parts[1])))
        return self._v.prefix + ".".join(parts) if path else self._v.prefix.rstrip(".")

    def _fields(self, what: str) -> dict[str, Any]:
        phase = ".bwd" if self._backward else ""
        fields = {**self._module, "name": f"{self._stem}{phase}.{what}"}
        return {**fields, "backward": True} if self._backward else fields

    def _param(self, leaf: str, shape: tuple[int, ...]) -> Ref:
        key = f"{self._stem}.{leaf}"
        if key not in self._params:
            origin = f"{self._path(self._stem)}.{leaf}"
            made = self._g.param(key, shape, self._v.dtype, origin=origin, module=self._module["module"])
            self._params[key] = made
        return self._params[key]

    def _op(self, what: str, target: str, *args: Any, shape: tuple[int, ...], **more: Any) -> Ref:
        dtype = more.pop("dtype", self._v.dtype)
        return self._g.op(f"aten.{target}", *args, shape=shape, dtype=dtype, **self._fields(what), **more)

    def _like(self, what: str, target: str, *args: Any) -> Ref:
        """A pointwise op."""
        return self._g.pointwise(f"aten.{target}", *args, **self._fields(what))

    def _view(self, what: str, base: Ref, shape: tuple[int, ...], target: str = "aten.view.default") -> Ref:
        return self._g.view(base, shape, target=target, **self._fields(what))

    def _item(self, what: str, source: Ref, index: int) -> Ref:
        return self._g.getitem(source, index, **self._fields(what))

    # The model, forward.

    def build(self) -> JointGraph:
        tokens = self._g.input("tokens", (self._v.batch, SEQ), "int64")
        tangent = self._g.tangent("tangent", (), self._v.dtype)
        self._enter("te", "Embedding", backward=False)
        x = self._op("embedding", "embedding.default", self._param("weight", (VOCAB, WIDTH)), tokens, shape=self._wide)
        saved: list[dict[str, Any]] = []
        for layer in self._v.layers:
            kept: dict[str, Any] = {}
            x = self._block(f"h.{layer}", x, kept)
            saved.append(kept)
        last: dict[str, Any] = {}
        x = self._norm("f", x, last)
        logits = self._linear("head", x, WIDTH, VOCAB, last)
        self._enter("", "GPT", backward=False)
        chances = self._op("log_softmax", "_log_softmax.default", logits, -1, False, shape=self._out)
        loss = self._op("loss", "nll_loss.default", chances, tokens, shape=())
        self._enter("", "GPT", backward=True)
        g = self._op("nll", "nll_loss_backward.default", tangent, chances, tokens, shape=self._out)
        g = self._op("log_softmax", "_log_softmax_backward_data.default", g, chances, -1, shape=self._out)
        g = self._linear_backward("head", g, WIDTH, VOCAB, last)
        g = self._norm_backward("f", g, last)
        for layer, kept in zip(reversed(self._v.layers), reversed(saved), strict=True):
            g = self._block_backward(f"h.{layer}", g, kept)
        self._enter("te", "Embedding", backward=True)
        self._grads["te.weight"] = self._op(
            "weight", "embedding_dense_backward.default", g, tokens, VOCAB, shape=(VOCAB, WIDTH)
        )
        # Gradients are returned in the order of the primals, which is the order in which they were made.
        gradients = [None, *(self._grads[key] for key in self._params)]
        return self._g.build([loss], gradients, fingerprinted=False)

    @property
    def _wide(self) -> tuple[int, ...]:
        return (self._v.batch, SEQ, WIDTH)

    @property
    def _out(self) -> tuple[int, ...]:
        return (self._v.batch, SEQ, VOCAB)

    def _block(self, path: str, x: Ref, kept: dict[str, Any]) -> Ref:
        h = self._norm(f"{path}.ln1", x, kept)
        h = self._linear(f"{path}.qkv", h, WIDTH, 3 * WIDTH, kept)
        h = self._attention(f"{path}.attn", h, kept)
        h = self._linear(f"{path}.out", h, WIDTH, WIDTH, kept)
        self._enter(path, "Block", backward=False)
        x = self._like("add1", "add.Tensor", x, h)
        if self._v.inserted is not None:
            x = self._like("inserted", self._v.inserted.removeprefix("aten."), x)
        h = self._norm(f"{path}.ln2", x, kept)
        h = self._linear(f"{path}.fc", h, WIDTH, 4 * WIDTH, kept)
        self._enter(f"{path}.act", "Activation", backward=False)
        kept["act"] = h
        h = self._like("act", f"{self._v.activation}.default", h)
        h = self._linear(f"{path}.proj", h, 4 * WIDTH, WIDTH, kept)
        self._enter(path, "Block", backward=False)
        return self._like("add2", "add.Tensor", x, h)

    def _norm(self, path: str, x: Ref, kept: dict[str, Any]) -> Ref:
        self._enter(path, "LayerNorm", backward=False)
        weight, bias = self._param("weight", (WIDTH,)), self._param("bias", (WIDTH,))
        small = (self._v.batch, SEQ, 1)
        if self._v.norm == "fused":
            shapes = (self._wide, small, small)
            specs = tuple(self._g.spec(shape, self._v.dtype) for shape in shapes)
            made = self._g.op(
                "aten.native_layer_norm.default", x, [WIDTH], weight, bias, 1e-5, value=specs, **self._fields("norm")
            )
            y, mean, rstd = (self._item(what, made, i) for i, what in enumerate(("y", "mean", "rstd")))
        else:
            mean = self._op("mean5", "mean.dim", x, [-1], True, shape=small)
            rstd = self._op("rstd5", "var.correction", x, [-1], shape=small)
            centred = self._like("sub5", "sub.Tensor", x, mean)
            scaled = self._like("scaled5", "div.Tensor", centred, rstd)
            y = self._like("affine5", "addcmul.default", scaled, weight, bias)
        kept[path.rpartition(".")[2]] = (x, mean, rstd)
        return y

    def _linear(self, path: str, x: Ref, inner: int, outer: int, kept: dict[str, Any]) -> Ref:
        self._enter(path, "Linear", backward=False)
        weight, bias = self._param("weight", (outer, inner)), self._param("bias", (outer,))
        rows = self._view("rows", x, (self._rows, inner))
        turned = self._view("t", weight, (inner, outer), "aten.t.default")
        made = self._op("addmm", "addmm.default", bias, rows, turned, shape=(self._rows, outer))
        kept[path.rpartition(".")[2]] = (rows, turned)
        return self._view("shape", made, (self._v.batch, SEQ, outer))

    def _attention(self, path: str, h: Ref, kept: dict[str, Any]) -> Ref:
        self._enter(path, "Attention", backward=False)
        specs = tuple(self._g.spec(self._wide, self._v.dtype) for _ in range(3))
        parts = self._g.op("aten.split.Tensor", h, WIDTH, -1, value=specs, **self._fields("split"))
        q, k, v = (self._item(what, parts, i) for i, what in enumerate("qkv"))
        scores = (self._v.batch, SEQ, SEQ)
        if self._v.attention == "fused":
            value = (self._g.spec(self._wide, self._v.dtype), self._g.spec((self._v.batch, SEQ), self._v.dtype))
            made = self._g.op("aten._sdpa.default", q, k, v, value=value, **self._fields("sdpa"))
            out, lse = self._item("out", made, 0), self._item("lse", made, 1)
            kept["attn"] = (q, k, v, out, lse)
        else:
            turned = self._view("kt", k, (self._v.batch, WIDTH, SEQ), "aten.transpose.int")
            raw = self._op("scores", "bmm.default", q, turned, shape=scores)
            scaled = self._like("scale", "mul.Tensor", raw, 0.25)
            chances = self._like("softmax", "_softmax.default", scaled, -1, False)
            out = self._op("mix", "bmm.default", chances, v, shape=self._wide)
            kept["attn"] = (q, turned, v, chances)
        return self._view("merge", out, self._wide)

    # The same, backward.

    def _block_backward(self, path: str, g: Ref, kept: dict[str, Any]) -> Ref:
        h = self._linear_backward(f"{path}.proj", g, 4 * WIDTH, WIDTH, kept)
        self._enter(f"{path}.act", "Activation", backward=True)
        h = self._like("act", f"{self._v.activation}_backward.default", h, kept["act"])
        h = self._linear_backward(f"{path}.fc", h, WIDTH, 4 * WIDTH, kept)
        h = self._norm_backward(f"{path}.ln2", h, kept)
        self._enter(path, "Block", backward=True)
        g = self._like("add2", "add.Tensor", g, h)
        if self._v.inserted is not None:
            g = self._like("inserted", self._v.inserted.removeprefix("aten."), g)
        h = self._linear_backward(f"{path}.out", g, WIDTH, WIDTH, kept)
        h = self._attention_backward(f"{path}.attn", h, kept)
        h = self._linear_backward(f"{path}.qkv", h, WIDTH, 3 * WIDTH, kept)
        h = self._norm_backward(f"{path}.ln1", h, kept)
        self._enter(path, "Block", backward=True)
        return self._like("add1", "add.Tensor", g, h)

    def _norm_backward(self, path: str, g: Ref, kept: dict[str, Any]) -> Ref:
        self._enter(path, "LayerNorm", backward=True)
        x, mean, rstd = kept[path.rpartition(".")[2]]
        weight, bias = self._param("weight", (WIDTH,)), self._param("bias", (WIDTH,))
        specs = tuple(self._g.spec(shape, self._v.dtype) for shape in (self._wide, (WIDTH,), (WIDTH,)))
        made = self._g.op(
            "aten.native_layer_norm_backward.default",
            g,
            x,
            mean,
            rstd,
            weight,
            bias,
            value=specs,
            **self._fields("norm"),
        )
        gx, gw, gb = (self._item(what, made, i) for i, what in enumerate(("x", "weight", "bias")))
        self._grads |= {f"{path}.weight": gw, f"{path}.bias": gb}
        return gx

    def _linear_backward(self, path: str, g: Ref, inner: int, outer: int, kept: dict[str, Any]) -> Ref:
        self._enter(path, "Linear", backward=True)
        rows, turned = kept[path.rpartition(".")[2]]
        flat = self._view("rows", g, (self._rows, outer))
        back = self._view("tt", turned, (outer, inner), "aten.t.default")
        gx = self._op("gx", "mm.default", flat, back, shape=(self._rows, inner))
        across = self._view("t", flat, (outer, self._rows), "aten.t.default")
        self._grads[f"{path}.weight"] = self._op("gw", "mm.default", across, rows, shape=(outer, inner))
        total = self._op("sum", "sum.dim_IntList", flat, [0], True, shape=(1, outer))
        self._grads[f"{path}.bias"] = self._view("gb", total, (outer,))
        return self._view("shape", gx, (self._v.batch, SEQ, inner))

    def _attention_backward(self, path: str, g: Ref, kept: dict[str, Any]) -> Ref:
        self._enter(path, "Attention", backward=True)
        g = self._view("merge", g, self._wide)
        if self._v.attention == "fused":
            q, k, v, out, lse = kept["attn"]
            specs = tuple(self._g.spec(self._wide, self._v.dtype) for _ in range(3))
            made = self._g.op("aten._sdpa_backward.default", g, q, k, v, out, lse, value=specs, **self._fields("sdpa"))
            gq, gk, gv = (self._item(f"g{what}", made, i) for i, what in enumerate("qkv"))
        else:
            q, turned, v, chances = kept["attn"]
            gv = self._op("mixv", "bmm.default", chances, g, shape=self._wide)
            gc = self._op("mixc", "bmm.default", g, v, shape=(self._v.batch, SEQ, SEQ))
            gs = self._like("softmax", "_softmax_backward_data.default", gc, chances, -1)
            gs = self._like("scale", "mul.Tensor", gs, 0.25)
            gq = self._op("scoresq", "bmm.default", gs, turned, shape=self._wide)
            gk = self._op("scoresk", "bmm.default", gs, q, shape=self._wide)
        return self._op("cat", "cat.default", [gq, gk, gv], -1, shape=(self._v.batch, SEQ, 3 * WIDTH))
