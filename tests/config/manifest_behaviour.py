"""Which test shows what a key of a manifest does. `open: agents`: agents do not run yet."""

from __future__ import annotations

MANIFESTS = "tests/config/test_manifests.py::"
BOTH = f"{MANIFESTS}test_both_files_say_the_same_of_one_agent"
GRANTED = f"{MANIFESTS}test_grants_pass_as_they_are_written"
TOOLS = f"{MANIFESTS}test_servers_and_skills_are_granted_as_tools_and_agents_by_name"
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
    "tags": OPEN,
    "schedule.periodic.cron": OPEN,
    "schedule.proactive.conditions": OPEN,
    "schedule.continuous.check_interval_secs": OPEN,
    "priority": OPEN,
    "profile": f"{MANIFESTS}test_a_profile_grants_its_tools_and_what_they_need",
    "skills": TOOLS,
    "mcp_servers": TOOLS,
    "workspace": f"{MANIFESTS}test_a_workspace_inside_the_workspaces_or_elsewhere_is_taken",
    "published": OPEN,
    "allow_reentry": OPEN,
    "max_history_messages": OPEN,
    "guide": OPEN,
    "model.provider": OPEN,
    "model.model": OPEN,
    "model.max_tokens": OPEN,
    "model.temperature": OPEN,
    "model.system_prompt": OPEN,
    "model.api_key_env": OPEN,
    "model.base_url": OPEN,
    "fallback_models[].provider": OPEN,
    "fallback_models[].model": OPEN,
    "fallback_models[].api_key_env": OPEN,
    "fallback_models[].base_url": OPEN,
    "capabilities.tools": GRANTED,
    "capabilities.network": GRANTED,
    "capabilities.memory_read": GRANTED,
    "capabilities.memory_write": GRANTED,
    "capabilities.agent_message": TOOLS,
    "capabilities.agent_spawn": OPEN,
    "capabilities.agent_kill": OPEN,
    "capabilities.shell": GRANTED,
    "capabilities.paths": OPEN,
    "capabilities.deny_paths": OPEN,
    "policy.mode": OPEN,
    "policy.project": OPEN,
    "policy.spec": OPEN,
    "policy.blacklist": OPEN,
    "mcp.expose_tools": OPEN,
    "mcp.private_tools": OPEN,
    "mcp.expose_resources": OPEN,
    "limits.tool_rounds": OPEN,
    "limits.tool_calls": OPEN,
    "limits.agent_calls": OPEN,
    "limits.tools_at_once": OPEN,
    "limits.tool_timeout_secs": OPEN,
    "limits.model_timeout_secs": OPEN,
    "limits.plugin_timeout_secs": OPEN,
    "limits.deadline_secs": OPEN,
    "resources.max_memory_bytes": OPEN,
    "resources.max_cpu_time_ms": OPEN,
    "resources.max_tool_calls_per_minute": OPEN,
    "resources.max_llm_tokens_per_hour": OPEN,
    "resources.max_network_bytes_per_hour": OPEN,
    "resources.max_cost_per_hour_usd": OPEN,
    "resources.max_cost_per_day_usd": OPEN,
    "resources.max_cost_per_month_usd": OPEN,
    "autonomous.max_iterations": OPEN,
    "autonomous.max_restarts": OPEN,
    "autonomous.heartbeat_interval_secs": OPEN,
    "autonomous.heartbeat_channel": OPEN,
    "autonomous.quiet_hours": OPEN,
    "routing.simple_model": OPEN,
    "routing.medium_model": OPEN,
    "routing.complex_model": OPEN,
    "routing.simple_threshold": OPEN,
    "routing.complex_threshold": OPEN,
    "safety.max_loop_ticks": OPEN,
    "safety.max_token_usage": OPEN,
    "safety.repetitive_fail_threshold": OPEN,
    "safety.frustration_threshold": OPEN,
    "safety.error_window_size": OPEN,
    "safety.error_rate_threshold": OPEN,
    "communication.receive_from": OPEN,
    "communication.expose_tools": OPEN,
    "communication.max_message_bytes": OPEN,
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
