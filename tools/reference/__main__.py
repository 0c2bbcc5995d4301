"""Write anew what the pages take from the code: `make reference`."""

from __future__ import annotations

from tools.reference.pages import outdated

for page, text in outdated().items():
    page.write_text(text, "utf-8")
    print(f"{page.name} is written anew.")
