# ruff: noqa: E501 - names of tests are sentences
# ruff: noqa: E501 - names of tests are sentences
"""Which test shows what a key of a manifest does. `open: agents`: no one test, or a part to come."""

from __future__ import annotations

MANIFESTS = "tests/config/test_manifests.py::"
BOTH = f"{MANIFESTS}test_both_files_say_the_same_of_one_agent"
GRANTED = f"{MANIFESTS}test_grants_pass_as_they_are_written"
TOOLS = f"{MANIFESTS}test_servers_and_skills_are_granted_as_tools_and_agents_by_name"
OFFERING = "tests/app/offering/"
BOUNDS = "tests/agents/test_bounds.py::"
SPENDING = "tests/agents/test_spending.py::"
TURNS = "tests/agents/test_turns.py::"
CLOSED = f"{BOUNDS}test_a_path_that_is_denied_stays_closed_to_every_tool_of_files"
MODELS = "tests/agents/models/test_providers.py::"
STEPS = "tests/agents/models/test_steps.py::"
SCHEDULES = "tests/app/schedules/test_schedules.py::"
OPEN = "open: agents"

TOML: dict[str, str] = {
    "name": f"{MANIFESTS}test_every_agent_is_loaded_by_its_name",
    "title": OPEN,
    "version": OPEN,
    "description": OPEN,
    "author": OPEN,
    "module": OPEN,
    "python": OPEN,
    "requirements": OPEN,
    "sandbox": f"{BOUNDS}test_a_program_is_not_started_without_its_sandbox_unless_its_manifest_says_so",
    "tags": OPEN,
    "schedule.periodic.cron": f"{SCHEDULES}test_a_manifest_is_a_schedule_of_the_agents_own",
    "schedule.proactive.conditions": "tests/app/schedules/test_triggers.py::test_a_manifest_waits_for_events",
    "schedule.continuous.check_interval_secs": f"{SCHEDULES}test_in_its_quiet_hours_an_agent_does_not_start_by_the_clock",
    "priority": OPEN,
    "profile": f"{MANIFESTS}test_a_profile_grants_its_tools_and_what_they_need",
    "skills": TOOLS,
    "mcp_servers": TOOLS,
    "workspace": f"{MANIFESTS}test_a_workspace_inside_the_workspaces_or_a_root_of_the_operators_is_taken",
    "published": OPEN,
    "allow_reentry": OPEN,
    "max_history_messages": OPEN,
    "guide": OPEN,
    "model.provider": f"{MODELS}test_the_nodes_own_model_is_that_of_agents_that_name_none",
    "model.model": f"{MODELS}test_the_next_model_answers_when_the_one_before_cannot",
    "model.max_tokens": f"{STEPS}test_limits_of_the_manifest_reach_the_model",
    "model.context_window": f"{TURNS}test_the_window_of_a_model_is_what_its_manifest_says",
    "model.temperature": f"{STEPS}test_limits_of_the_manifest_reach_the_model",
    "model.system_prompt": f"{STEPS}test_what_is_asked_is_the_whole_conversation_with_its_results",
    "model.untrusted": "tests/contract/test_handles.py::test_what_a_model_has_not_read_goes_where_it_says_and_taints_nothing",
    "model.api_key_env": f"{MODELS}test_an_address_of_the_manifest_is_reached_with_the_manifests_key",
    "model.base_url": f"{MODELS}test_an_address_of_the_manifest_is_reached_with_the_manifests_key",
    "fallback_models[].provider": f"{MODELS}test_the_next_model_answers_when_the_one_before_cannot",
    "fallback_models[].model": f"{MODELS}test_the_next_model_answers_when_the_one_before_cannot",
    "fallback_models[].api_key_env": f"{MODELS}test_a_fallback_has_address_and_key_of_its_own",
    "fallback_models[].base_url": f"{MODELS}test_a_fallback_has_address_and_key_of_its_own",
    "capabilities.tools": GRANTED,
    "capabilities.network": GRANTED,
    "capabilities.memory_read": GRANTED,
    "capabilities.memory_write": GRANTED,
    "capabilities.memory_shared": f"{TURNS}test_an_agent_may_remember_for_all_alike",
    "capabilities.agent_message": TOOLS,
    "capabilities.agent_spawn": OPEN,
    "capabilities.agent_kill": OPEN,
    "capabilities.shell": GRANTED,
    "capabilities.paths": OPEN,
    "capabilities.deny_paths": CLOSED,
    "policy.mode": OPEN,
    "policy.project": OPEN,
    "policy.spec": OPEN,
    "policy.blacklist": OPEN,
    "mcp.expose_tools": f"{OFFERING}test_agents.py::test_the_seeds_agent_shows_the_two_tools_that_it_exposes",
    "mcp.private_tools": f"{OFFERING}test_agents.py::test_what_is_private_stays_so_and_what_is_not_granted_is_not_exposed",
    "mcp.expose_resources": f"{OFFERING}test_federation.py::test_an_agent_shows_the_resources_that_it_exposes_and_can_read",
    "limits.tool_rounds": OPEN,
    "limits.tool_calls": f"{BOUNDS}test_a_run_of_a_program_makes_no_more_calls_than_its_manifest_says",
    "limits.agent_calls": OPEN,
    "limits.tools_at_once": OPEN,
    "limits.tool_timeout_secs": f"{BOUNDS}test_a_tool_call_takes_no_longer_than_the_manifest_says",
    "limits.model_timeout_secs": f"{MODELS}test_time_is_up_for_a_model_that_hangs",
    "limits.plugin_timeout_secs": OPEN,
    "limits.deadline_secs": OPEN,
    "limits.runs_at_once": "tests/cluster/test_durable.py::test_no_more_tasks_of_an_agent_than_its_manifest_says_are_worked_on_by_all_nodes",
    "resources.max_memory_bytes": OPEN,
    "resources.max_cpu_time_ms": OPEN,
    "resources.max_tool_calls_per_minute": f"{BOUNDS}test_an_agent_makes_so_many_calls_in_a_minute",
    "resources.max_llm_tokens_per_hour": f"{SPENDING}test_tokens_of_an_hour_end_the_next_run_until_the_hour_has_passed",
    "resources.max_network_bytes_per_hour": OPEN,
    "resources.max_cost_per_hour_usd": f"{SPENDING}test_money_of_an_hour_ends_a_run_in_the_middle",
    "resources.max_cost_per_day_usd": f"{SPENDING}test_money_of_a_day_and_a_month_comes_back_with_the_calendar",
    "resources.max_cost_per_month_usd": f"{SPENDING}test_money_of_a_day_and_a_month_comes_back_with_the_calendar",
    "autonomous.max_iterations": OPEN,
    "autonomous.max_restarts": OPEN,
    "autonomous.heartbeat_interval_secs": OPEN,
    "autonomous.heartbeat_channel": OPEN,
    "routing.simple_model": f"{MODELS}test_the_length_of_what_is_asked_chooses_the_model",
    "routing.medium_model": f"{MODELS}test_the_length_of_what_is_asked_chooses_the_model",
    "routing.complex_model": f"{MODELS}test_the_length_of_what_is_asked_chooses_the_model",
    "routing.simple_threshold": f"{MODELS}test_the_length_of_what_is_asked_chooses_the_model",
    "routing.complex_threshold": f"{MODELS}test_the_length_of_what_is_asked_chooses_the_model",
    "autonomous.quiet_hours": f"{SCHEDULES}test_in_its_quiet_hours_an_agent_does_not_start_by_the_clock",
    "safety.max_loop_ticks": f"{SPENDING}test_the_tokens_and_the_steps_of_one_run_are_bounded",
    "safety.max_token_usage": f"{SPENDING}test_the_tokens_and_the_steps_of_one_run_are_bounded",
    "safety.repetitive_fail_threshold": OPEN,
    "safety.frustration_threshold": OPEN,
    "safety.error_window_size": OPEN,
    "safety.error_rate_threshold": OPEN,
    "communication.receive_from": f"{BOUNDS}test_an_agent_takes_messages_of_those_it_names_and_of_people",
    "communication.expose_tools": OPEN,
    "communication.max_message_bytes": f"{BOUNDS}test_a_message_is_no_longer_than_the_manifest_says",
    "communication.events": OPEN,
    "communication.timeout_secs": OPEN,
    "communication.max_retries": OPEN,
    "communication.grace_secs": OPEN,
    "plugins[].name": OPEN,
    "plugins[].path": OPEN,
    "plugins[].config": OPEN,
}

# Each key of `agent.json` is one of `agent.toml`; the test holds one file against the other.
JSON: dict[str, str] = {
    **{f"identity.{key}": BOTH for key in ("id", "name", "description", "version")},
    **{
        f"cognition.{key}": BOTH
        for key in ("provider", "model", "temperature", "maxTokens", "maxToolRounds")
    },
    "capabilities.tools": BOTH,
    "capabilities.allowedPaths": BOTH,
    **{
        f"policy.{key}": BOTH
        for key in (
            "mode", "project", "spec", "blacklist", "maxConcurrentTools", "toolTimeout",
            "llmTimeout", "pathRestrictions",
        )
    },
    "memory.slidingWindowSize": BOTH,
    **{f"plugins[].{key}": BOTH for key in ("name", "path", "config")},
    "guide": BOTH,
    **{
        f"safety.{key}": BOTH
        for key in (
            "maxLoopTicks", "maxTokenUsage", "repetitiveFailThreshold", "frustrationThreshold",
            "errorWindowSize", "errorRateThreshold",
        )
    },
    **{f"sandbox.{key}": BOTH for key in ("memoryLimitMb", "rpcTimeoutMs", "cpuTimeoutMs")},
    **{
        f"communication.{key}": BOTH
        for key in (
            "canSendTo", "canReceiveFrom", "exposedTools", "maxMessageSize", "eventSubscriptions",
            "timeoutMs", "maxRetries", "gracePeriodMs",
        )
    },
    **{f"mcp.{key}": BOTH for key in ("expose_tools", "private_tools", "expose_resources")},
}  # fmt: skip
