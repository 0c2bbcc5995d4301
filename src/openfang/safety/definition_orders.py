"""Which traits of a text make an order to a model when they stand together: data."""

from __future__ import annotations

from typing import Final

# Traits that make an order when they meet: all of them in a sentence and the one before it, the
# second set in the sentence itself. No real definition that the tests keep has such a pair.
ORDERS: Final[tuple[tuple[str, frozenset[str], frozenset[str]], ...]] = tuple(
    (code, frozenset(around.split()), frozenset((here or around).split()))
    for code, around, here in (
        ("sends_data", "gives_away private", ""),
        ("sends_data", "gives_away theirs", ""),
        ("sends_data", "gives_away named_model", ""),
        ("sends_data", "gives_away model elsewhere", "gives_away elsewhere"),
        ("sends_data", "gives_away elsewhere order", "gives_away elsewhere"),
        ("sends_data", "sends theirs", ""),
        ("sends_data", "sends private argument", "sends private"),
        ("sends_data", "argument private", ""),
        ("sends_data", "elsewhere private", ""),
        ("sends_data", "elsewhere model", ""),
        ("sends_data", "elsewhere order sends", ""),
        ("sends_data", "named_model private", ""),
        ("sends_data", "threat private sends", "sends private"),
        ("sends_data", "threat theirs", ""),
        ("sends_data", "sends private model unbounded", "sends private model"),
        ("sends_data", "argument sends user model", ""),
        ("sends_data", "argument before", ""),
        ("sends_data", "before private", ""),
        ("sends_data", "before elsewhere", ""),
        ("sends_data", "self private", ""),
        ("sends_data", "self theirs", ""),
        ("sends_data", "self everything", ""),
        ("sends_data", "self model", ""),
        ("sends_data", "self before sends", ""),
        ("sends_data", "self gives_away", ""),
        ("sends_data", "everything elsewhere", ""),
        ("sends_data", "everything named_model", ""),
        ("sends_data", "everything sends user model", ""),
        ("sends_data", "private everything sends", ""),
        ("orders_other_tools", "foreign user", ""),
        ("orders_other_tools", "foreign self", ""),
        ("orders_other_tools", "foreign everything", ""),
        ("orders_other_tools", "foreign before", ""),
        ("false_authority", "authority everything", ""),
        ("false_authority", "authority self", ""),
        ("acts_unasked", "self acts", ""),
        ("acts_unasked", "self unbounded acts", ""),
        ("orders_other_tools", "foreign model", ""),
        ("orders_other_tools", "foreign order sends", "foreign order"),
        ("orders_other_tools", "foreign order acts", "foreign order"),
        ("orders_other_tools", "foreign diverts", ""),
        ("orders_other_tools", "foreign private", ""),
        ("orders_other_tools", "foreign threat", ""),
        ("orders_other_tools", "foreign faulty", ""),
        ("orders_other_tools", "foreign sends unbounded", ""),
        ("orders_other_tools", "foreign elsewhere", ""),
        ("orders_other_tools", "other_tool sends", ""),
        ("orders_other_tools", "other_tool order", ""),
        ("orders_other_tools", "other_tool acts", ""),
        ("orders_other_tools", "other_tool unbounded", ""),
        ("orders_other_tools", "other_tool argument", ""),
        ("orders_other_tools", "other_tool model", "other_tool"),
        ("orders_other_tools", "other_tool diverts", "other_tool"),
        ("orders_other_tools", "other_tool elsewhere", "elsewhere"),
        ("false_authority", "authority model", ""),
        ("false_authority", "authority gives_away", ""),
        ("false_authority", "authority private", ""),
        ("false_authority", "authority threat", ""),
        ("false_authority", "authority acts unbounded", ""),
        ("acts_unasked", "named_model acts", ""),
        ("acts_unasked", "model acts unbounded order", "acts model"),
        ("acts_unasked", "elsewhere acts", ""),
    )
)

# One of these is in every order but those about other tools.
LEADING: Final = frozenset(
    {
        "named_model",
        "private",
        "theirs",
        "elsewhere",
        "authority",
        "acts",
        "gives_away",
        "self",
        "everything",
        "argument",
    }
)
