"""Numbers as people read them: bytes, counts, FLOPs, shares, ages. The only place that knows KiB, MiB and GiB."""

from __future__ import annotations

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SHORT_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "bool",
    "complex64": "c64",
    "complex128": "c128",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}


def bytes_text(nbytes: int) -> str:
    """Bytes with a binary unit and three or four digits: ``6.09 GiB``, ``474.7 MiB``, ``512 B``."""
    size = abs(nbytes)
    sign = "-" if nbytes < 0 else ""
    if size < KIB:
        return f"{sign}{size} B"
    # Thresholds sit where rounding would print 1024.0 of the smaller unit.
    if size < MIB - KIB // 20:
        return f"{sign}{size / KIB:.1f} KiB"
    if size < GIB - MIB // 20:
        return f"{sign}{size / MIB:.1f} MiB"
    if size < TIB - GIB // 200:
        return f"{sign}{size / GIB:.2f} GiB"
    return f"{sign}{size / TIB:.2f} TiB"


def column_unit(largest_bytes: int) -> tuple[str, int]:
    """The unit of a column of sizes, so that small models do not print a column of zeros."""
    if largest_bytes >= MIB:
        return "MiB", MIB
    if largest_bytes >= KIB:
        return "KiB", KIB
    return "bytes", 1


def column_bytes(nbytes: int, unit_bytes: int) -> str:
    """Bytes as a bare number of a column's unit: one decimal, none for bytes; tiny but not nothing is ``<0.1``."""
    if unit_bytes == 1:
        return str(nbytes)
    number = nbytes / unit_bytes
    return "<0.1" if 0 < number < 0.05 else f"{number:.1f}"


def count_text(count: int) -> str:
    """``1,977``."""
    return f"{count:,}"


def plural(count: int, noun: str, plural_noun: str | None = None) -> str:
    """``1 region``, ``2 regions``, ``1,977 nodes``."""
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"


def magnitude_text(number: float, unit: str = "") -> str:
    """A large number with a decimal prefix: ``124.4 M``, ``2.15 T``; with a unit, ``2.15 TFLOP``."""
    for size, prefix in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 0.9995:
            scaled = number / size
            return f"{scaled:.2f} {prefix}{unit}" if abs(scaled) < 9.995 else f"{scaled:.1f} {prefix}{unit}"
    return f"{number:g} {unit}".rstrip()


def parameters_text(count: int) -> str:
    """A parameter count: ``124.4 M``, ``70.55 B``."""
    if count >= 999_950_000:
        return f"{count / 1e9:.2f} B"
    if count >= 999_950:
        return f"{count / 1e6:.1f} M"
    if count >= 10_000:
        return f"{count / 1e3:.1f} k"
    return f"{count:,}"


def percent_text(part: float, whole: float) -> str:
    """A share in percent with one decimal, no sign: ``25.2``."""
    if not whole:
        return "0.0"
    share = 100.0 * part / whole
    return "<0.1" if 0 < share < 0.05 else f"{share:.1f}"


def change_text(new: float, old: float) -> str:
    """A change relative to `old`: ``+74.0 %``, ``same``, ``≈ same`` below 0.05 %; ``new`` where `old` is nothing."""
    if new == old:
        return "same"
    if not old:
        return "new"
    change = 100.0 * (new - old) / old
    if abs(change) < 0.05:
        return "≈ same"
    return f"{'+' if change > 0 else '−'}{abs(change):.1f} %"


def dtype_text(dtype: str) -> str:
    """``f32`` of ``float32`` or ``torch.float32``."""
    name = dtype.removeprefix("torch.")
    return _SHORT_DTYPES.get(name, name)


def shape_text(shape: tuple[int | str, ...]) -> str:
    """``8192×50257``; ``scalar`` where there is no dimension."""
    if not shape:
        return "scalar"
    return "×".join(f"({dim})" if isinstance(dim, str) and not dim.isidentifier() else str(dim) for dim in shape)


def age_text(seconds: float) -> str:
    """``just now``, ``3 min ago``, ``5 h ago``, ``2 days ago``."""
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h ago"
    return f"{int(seconds // 86400)} days ago"
