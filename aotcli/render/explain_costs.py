"""What doing otherwise costs, in words: what runs again, from what, what is saved instead, what is freed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from aotcli.analysis.layers import UNKNOWN_MODULE
from aotcli.analysis.op_names import op_label
from aotcli.ir.difference import Fate
from aotcli.ir.explanation import Chain, ChainSource, Change, ChangeRow, Estimate, Explanation, Flip, SourceKind
from aotcli.render.explain_phrases import MOST, joined, listed, place_text
from aotcli.render.units import bytes_text, change_text, magnitude_text, percent_text, plural

_MOST_OPS = 8

Lines = list[tuple[str, str]]
"""(label, sentence)."""


def chain_texts(chain: Chain, count: int) -> list[str]:
    """What runs again, from what, and what that costs."""
    names = [place.what for place in chain.ops]
    each = " for each" if count > 1 else ""
    ran = f"{plural(len(names), 'op')}{each}" if names else f"views only{each}"
    which = f" ({listed(names, _MOST_OPS)})" if names else ""
    return [f"{ran}{which} from {_sources(chain.sources)}", _cost(chain)]


def _cost(chain: Chain) -> str:
    parts = [magnitude_text(chain.flops, "FLOP")]
    if chain.unknown_flops:
        parts[0] += f" and those of {listed([op_label(op) for op in chain.unknown_flops])}, unknown"
    parts.append(f"{bytes_text(chain.moved_bytes)} read and written")
    if chain.estimate is not None:
        parts.append(estimate_text(chain.estimate))
    return "; ".join(parts)


def estimate_text(estimate: Estimate) -> str:
    """A guess that says what it rests on."""
    speeds = f"{_speed(estimate.flops_per_s, 'FLOP/s')}, {_speed(estimate.bytes_per_s, 'B/s')}"
    share = percent_text(estimate.share, 1.0)
    return f"estimate {share} % of the step, {_seconds(estimate.seconds)} (op by op at {speeds})"


def _speed(per_second: float, unit: str) -> str:
    scale, prefix = (1e12, "T") if per_second >= 1e12 else (1e9, "G")
    return f"{per_second / scale:g} {prefix}{unit}"


def _seconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _sources(sources: Sequence[ChainSource]) -> str:
    saved = [s for s in sources if s.kind is SourceKind.SAVED]
    kept = [s for s in sources if s.kind is SourceKind.KEPT]
    texts = [f"{place_text(s.place)} ({'saved then' if s.newly_saved else 'saved: ' + s.reason})" for s in saved]
    texts = list(dict.fromkeys(texts))
    if len(texts) > MOST:
        texts = [*texts[:MOST], f"{len(texts) - MOST} more saved values"]
    if kept:
        texts.append(listed(list(dict.fromkeys(s.place.what for s in kept))))
    return joined(texts) if texts else "nothing but constants"


def flip_lines(explanation: Explanation, flip: Flip, target: str) -> Lines:
    if flip.change is None:
        return [("flip", f"not possible: {flip.obstacle}")]
    lines: Lines = []
    change = flip.change
    if explanation.fate is Fate.SAVED:
        if explanation.chain is not None:
            lines += [("rerun", text) for text in chain_texts(explanation.chain, explanation.count)]
        else:
            lines.append(("rerun", _without_rerun(explanation, change)))
        lines.append(("instead", _instead(change)))
        lines.append(("frees" if change.freed_bytes >= 0 else "costs", _freed(change)))
    else:
        lines.append(("saved", _added(change)))
    lines.append(("flip", flip_command(flip, target)))
    return lines


def _without_rerun(explanation: Explanation, change: Change) -> str:
    """Why nothing runs a second time for a value that is not saved any more."""
    moved = any(row.after is Fate.BACKWARD and explanation.place.name in row.names for row in change.rows)
    if moved:
        return "nothing: the forward does without it, and the backward computes it alone"
    return "nothing: the backward gets by without it"


def flip_command(flip: Flip, target: str) -> str:
    """The command that shows what the annotation does."""
    options = " ".join(f"--{flip.rules[0].action} {shlex.quote(pattern)}" for pattern in flip.patterns)
    return " ".join(word for word in ("aotcli explain", target, options) if word)


def _instead(change: Change) -> str:
    """What has to be saved in place of what is not saved any more."""
    rows = change.newly_saved
    if not rows:
        return "nothing else has to be saved"
    texts = [f"{_row(row)}, {bytes_text(row.nbytes)}" for row in rows]
    more = f"; and {len(rows) - MOST} more" if len(rows) > MOST else ""
    return f"to be saved: {'; '.join(texts[:MOST])}{more}"


def _row(row: ChangeRow) -> str:
    module = "" if row.module == UNKNOWN_MODULE else f" of {row.module}"
    return f"{row.what}{module}{f' ×{row.count}' if row.count > 1 else ''}"


def _freed(change: Change) -> str:
    return f"{bytes_text(abs(change.freed_bytes))} net: saved {_saved(change)}, {_peaks(change)}"


def _added(change: Change) -> str:
    gone = change.before.recomputed_ops - change.after.recomputed_ops
    fewer = f"{plural(gone, 'op')} fewer to rerun" if gone >= 0 else f"{plural(-gone, 'op')} more to rerun"
    freed = change.freed_bytes
    net = f"would free {bytes_text(freed)}" if freed > 0 else f"would take {bytes_text(-freed)}"
    return f"{net} net: {_saved(change)}, {fewer}, {_peaks(change)}"


def _saved(change: Change) -> str:
    return f"{bytes_text(change.before.saved_bytes)} → {bytes_text(change.after.saved_bytes)}"


def _peaks(change: Change) -> str:
    before, after = change.before.peak_bytes, change.after.peak_bytes
    return f"peak {bytes_text(before)} → {bytes_text(after)} ({change_text(after, before)})"
