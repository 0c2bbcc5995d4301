"""Every built-in of the contract: what it can make nothing of, and the test of its effect.

Who adds one puts its name into `WRONG` and `EFFECTS`; the tests beside this table fail until then.
"""

from __future__ import annotations

import re
from typing import Any

from tests.requirements import BY_ID

_LISTED = re.search(r"by upstream's list: (.*?)\. Each", BY_ID["C6.2"].text, re.DOTALL)
assert _LISTED
NAMES = re.findall(r"\b[a-z0-9]+_[a-z]+\b", _LISTED[1])
"""The names of the contract, in its order."""

# Arguments that a caller with every grant is refused for, before anything runs.
WRONG: dict[str, dict[str, Any]] = {
    "file_read": {},
    "file_write": {"path": 7},
    "file_list": {"path": 7},
    "web_fetch": {"url": 7},
    "web_search": {"query": "figs", "max_results": 21},
    "shell_exec": {"command": []},
    "bash_exec": {},
    "agent_send": {"agent_id": "echo"},
    "agent_spawn": {"manifest_toml": 7},
    "agent_list": {"x": 1},
    "agent_kill": {"agent_id": ""},
    "memory_store": {"key": ""},
    "memory_recall": {},
    "agent_find": {"query": ""},
    "task_post": {"title": "no description"},
    "task_claim": {"task_id": 7},
    "task_complete": {"task_id": "todo_1"},
    "task_list": {"status": "lost"},
    "event_publish": {"event_type": ""},
    "schedule_create": {"description": "no schedule"},
    "schedule_list": {"x": 1},
    "schedule_delete": {"id": 7},
    "image_analyze": {"path": 7},
    "location_get": {"ip": "1.1.1.1"},
    "a2a_discover": {},
    "a2a_send": {"message": 7},
    "system_time": {"timezone": 7},
}

_HERE = "tests/contract/test_agents.py::"
_DOES = f"{_HERE}test_a_built_in_does_what_it_says_and_refuses_what_it_cannot_take"
_ON_DISK = f"{_HERE}test_what_is_written_is_on_disk_in_the_callers_own_workspace"
_ELSEWHERE = f"{_HERE}test_a_page_is_fetched_and_an_agent_elsewhere_is_found_and_asked"
_SPAWNED = f"{_HERE}test_who_is_spawned_has_at_most_what_its_parent_has"
_BOARD = "tests/contract/test_builtins.py::test_work_is_left_on_the_board_and_its_result_comes_back"
_LOOKING = "tests/contract/test_looking.py::"
_OWN_TIME = "tests/contract/test_own_time.py::"
_PUBLISHED = f"{_OWN_TIME}test_an_event_is_seen_from_outside_and_starts_an_agent_that_writes_a_file"
EFFECTS: dict[str, str] = {
    "file_read": _DOES,
    "file_write": _ON_DISK,
    "file_list": _DOES,
    "web_fetch": _ELSEWHERE,
    "web_search": f"{_LOOKING}test_a_search_reaches_the_engine_with_the_stored_key",
    "shell_exec": _DOES,
    "bash_exec": _DOES,
    "agent_send": _DOES,
    "agent_spawn": _SPAWNED,
    "agent_list": _DOES,
    "agent_kill": _SPAWNED,
    "memory_store": _DOES,
    "memory_recall": _DOES,
    "agent_find": _DOES,
    "task_post": _BOARD,
    "task_claim": _BOARD,
    "task_complete": _BOARD,
    "task_list": _BOARD,
    "event_publish": _PUBLISHED,
    "schedule_create": f"{_OWN_TIME}test_a_schedule_really_fires_and_its_effect_is_a_file_on_disk",
    "schedule_list": f"{_OWN_TIME}test_one_that_repeats_runs_again_and_again_until_it_is_deleted",
    "schedule_delete": f"{_OWN_TIME}test_one_that_repeats_runs_again_and_again_until_it_is_deleted",
    "image_analyze": f"{_LOOKING}test_an_image_of_ones_own_workspace_is_looked_at_and_no_other",
    "location_get": f"{_LOOKING}test_the_place_of_the_configuration_is_told",
    "a2a_discover": _ELSEWHERE,
    "a2a_send": _ELSEWHERE,
    "system_time": _DOES,
}
