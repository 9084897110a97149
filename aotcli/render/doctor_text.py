"""What `aotcli doctor` prints."""

from __future__ import annotations

from aotcli.ir.environment import Doctor, Part
from aotcli.render.page import Column, Page, table


def render_doctor_text(doctor: Doctor, page: Page) -> str:
    """Parts with versions, devices, and commands for what is missing."""
    columns = [Column("part", style="bold"), Column("version", minimum=8), Column("state"), Column("for", minimum=12)]
    lines = table(page, columns, [[part.name, part.version or "-", _state(part), part.use] for part in doctor.parts])
    lines.append("")
    for device in doctor.devices:
        state = device.detail if device.usable else f"not usable: {device.detail}"
        lines += page.wrap(state, 8, device.kind)
    missing = [part for part in doctor.parts if not part.ok]
    if missing:
        lines.append("")
    for part in missing:
        what = "replace" if part.version else "get"
        lines.append(f"To {what} {part.name}{'' if part.required else ' (optional)'}:")
        lines.append(f"  {part.fix}")
    lines += ["", "All that is needed is there." if doctor.ok else "Something that aotcli needs is missing or unfit."]
    return page.finish(lines)


def _state(part: Part) -> str:
    if part.ok:
        return "ok"
    missing = "missing" if part.version is None else "not supported"
    return missing if part.required else f"{missing}, optional"
