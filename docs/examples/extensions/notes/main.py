"""Two tools: one that uses what the node offers, one that is a plain function."""

from openfang.extension import Context, tool


@tool
async def add_note(*, title: str, text: str, context: Context) -> dict[str, str]:
    before = await context.memory.get(f"note.{title}", "")
    made = await context.call("system_time")
    context.progress(1, 2, "the time is known")
    await context.memory.set(f"note.{title}", text)
    context.log(f"{title}: {len(text)} characters")
    return {"by": context.config["SIGNATURE"], "at": made.text, "before": before}


@tool(name="count-lines")
def count_lines(*, text: str) -> str:
    return str(len(text.splitlines()))
