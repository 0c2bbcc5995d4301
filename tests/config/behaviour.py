# ruff: noqa: E501 - names of tests are sentences
"""Which test shows what a key does. `open: topic` stands for a part that is not built yet."""

from __future__ import annotations

LOAD = "tests/config/test_load.py::"
QUEUES = "tests/app/cluster/test_queues.py::"
SETTINGS = "tests/app/test_settings.py::"
BUILTIN = "tests/sources/test_builtin.py::"
GREEDY = "tests/faults/test_greedy.py::"
SHELL = "tests/sources/test_shell.py::"
BOARD = "tests/sources/test_board.py::"
SEARCH = "tests/sources/test_search.py::"
IMAGES = "tests/sources/test_images.py::"
PLACES = "tests/sources/test_places.py::"
COMPAT = "tests/compat/"
SLOW = "tests/faults/test_slow.py::"
API = "tests/edges/api/"
WEBHOOK = "tests/app/approvals/test_webhook.py::"
SERVERS = "tests/app/test_server_settings.py::"
SOURCE = "tests/sources/mcp/test_source.py::"
OFFERING = "tests/app/offering/"
TRIGGERS = "tests/app/schedules/test_triggers.py::"
SCHEDULES = "tests/app/schedules/test_schedules.py::"
ANCHOR = "tests/app/test_anchor.py::"
TRACING = "tests/app/test_tracing.py::"
OAUTH = "tests/sources/mcp/test_oauth.py::"

MODELS = "tests/agents/models/test_providers.py::"
RINGS = "tests/peers/rings/test_rings.py::"
_NODE_KEYS = {
    "name": f"{RINGS}test_a_chain_goes_over_three_nodes_signed",
    "url": f"{RINGS}test_a_chain_goes_over_three_nodes_signed",
    "public_key": f"{RINGS}test_a_foreign_peer_that_comes_back_is_counted_whatever_it_says",
    "allow_private": "tests/cli/test_nodes.py::test_a_private_address_is_fetched_from_only_if_it_is_said",
    "comes_as": "tests/app/nodes/test_hops.py::test_a_signature_holds_with_the_key_that_the_node_comes_in_with",
}
_SERVER_KEYS = {
    "comes_as": "tests/app/nodes/test_hops.py::test_whoever_is_called_is_known_by_the_key_they_come_in_with",
    "name": f"{SOURCE}test_a_server_of_the_configuration_is_a_source_of_tools",
    "transport.type": f"{SERVERS}test_an_address_is_reached_with_its_headers",
    "transport.command": f"{SOURCE}test_the_example_server_answers",
    "transport.args": f"{SOURCE}test_the_example_server_answers",
    "transport.url": f"{SERVERS}test_an_address_is_reached_with_its_headers",
    "transport.headers": f"{SERVERS}test_an_address_is_reached_with_its_headers",
    "timeout_secs": f"{SERVERS}test_a_call_has_the_servers_seconds_and_a_tool_may_have_its_own",
    "env": f"{SERVERS}test_a_child_has_the_variables_that_are_listed_in_either_form",
    "enabled": f"{SERVERS}test_a_server_that_is_not_enabled_is_not_there",
    "allow_tools": f"{SERVERS}test_tools_that_are_not_allowed_do_not_exist",
    "deny_side_effect_tags": f"{SERVERS}test_a_denied_side_effect_is_refused_by_gate_5_in_the_seeds_words",
    "scan": f"{API}test_definitions.py::test_the_operator_says_what_becomes_of_suspicious_words",
    "trust": f"{SERVERS}test_trust_decides_who_is_asked_and_whose_word_lowers_a_risk",
    "risk": f"{SERVERS}test_a_risk_holds_for_all_tools_but_those_that_have_their_own",
    "allow_private": f"{SERVERS}test_a_private_address_is_a_server_only_if_it_is_said",
    "roots": "tests/sources/mcp/test_questions.py::test_folders_are_asked_for_only_where_the_operator_says_so",
    "lazy": "tests/sources/mcp/test_supervision.py::test_a_lazy_server_wakes_on_the_first_call_of_a_tool_that_is_remembered",
    "singleton": "tests/cluster/test_singletons.py::test_everything_passes_between_a_client_and_a_server_at_another_node",
    "sandbox": f"{SERVERS}test_a_sandbox_shows_what_is_named_and_no_more",
    "network": f"{SERVERS}test_who_may_reach_the_network_and_private_addresses",
    "fs_read": f"{SERVERS}test_a_sandbox_shows_what_is_named_and_no_more",
    "fs_write": f"{SERVERS}test_a_sandbox_shows_what_is_named_and_no_more",
    "max_memory_mb": f"{GREEDY}test_memory_is_held_to_its_bound",
    "max_processes": f"{GREEDY}test_a_fork_bomb_is_held_to_its_number",
    "max_concurrency": f"{SERVERS}test_so_many_calls_reach_a_server_at_once",
    "tools.NAME.risk": f"{SERVERS}test_a_risk_holds_for_all_tools_but_those_that_have_their_own",
    "tools.NAME.tags": f"{SERVERS}test_a_tool_can_be_switched_off_tagged_and_tied_to_a_token",
    "tools.NAME.effect": f"{SERVERS}test_effect_and_targets_are_what_the_flow_rules_read",
    "tools.NAME.targets": f"{SERVERS}test_effect_and_targets_are_what_the_flow_rules_read",
    "tools.NAME.enabled": f"{SERVERS}test_a_tool_can_be_switched_off_tagged_and_tied_to_a_token",
    "tools.NAME.polls": f"{SERVERS}test_a_tool_that_polls_may_repeat_itself",
    "tools.NAME.requires_admin_token": f"{SERVERS}test_a_tool_can_be_switched_off_tagged_and_tied_to_a_token",
    "tools.NAME.timeout_secs": f"{SERVERS}test_a_call_has_the_servers_seconds_and_a_tool_may_have_its_own",
}
_OAUTH_KEYS = {
    "grant": "test_a_client_signs_in_by_its_own_right_and_proves_it_by_a_secret",
    "client_id": "test_a_client_that_is_registered_already_is_not_registered_again",
    "client_secret": "test_a_client_signs_in_by_its_own_right_and_proves_it_by_a_secret",
    "private_key": "test_a_client_signs_in_by_its_own_right_and_proves_it_by_a_key",
    "client_metadata_url": "test_a_document_stands_for_a_registration",
    "issuer": "test_a_secret_is_sent_to_nobody_but_its_issuer",
    "scopes": "test_the_operator_says_what_is_asked_for",
}
_ISSUER_KEYS = {
    "url": "test_a_token_of_the_issuer_opens_the_api_for_a_user_of_its_own",
    "audience": "test_any_of_several_audiences_will_do",
    "jwks_url": "test_the_operator_can_say_where_the_keys_are",
    "allow_private": "test_a_private_address_is_an_issuer_only_if_it_is_said",
    "required_scopes": "test_a_token_must_have_every_scope_that_is_required",
    "grants": "test_a_scope_opens_the_tools_that_are_granted_to_it",
}
_HOLDERS = {
    "holders.NAME.role": "test_a_scope_makes_an_auditor_of_its_holder",
    "holders.NAME.edges": "test_a_scope_says_where_its_holder_may_come_in",
    "holders.NAME.toolsets": "test_a_scope_binds_its_holder_to_toolsets_and_agents",
    "holders.NAME.agents": "test_a_scope_binds_its_holder_to_toolsets_and_agents",
    "holders.NAME.projects": "test_a_scope_says_in_which_project_and_mode_its_holder_works",
    "holders.NAME.mode": "test_a_scope_says_in_which_project_and_mode_its_holder_works",
    "holders.NAME.cells_per_minute": "test_a_scope_gives_its_holder_a_rate_of_its_own",
    "scope_claims": "test_scopes_are_read_where_the_issuer_writes_them",
    "name_claim": "test_the_holder_has_the_name_that_the_operator_looks_for",
    "claims": "test_no_wrong_token_of_thirty_opens_any_edge",
}
_A2A_SERVED = {
    "enabled": "test_until_it_is_enabled_nothing_of_it_is_there",
    "listen_path": "test_the_operator_chooses_path_primary_agent_and_kind_of_card",
    "primary_agent": "test_the_operator_chooses_path_primary_agent_and_kind_of_card",
    "card": "test_the_operator_chooses_path_primary_agent_and_kind_of_card",
    "publish": "test_the_operator_publishes_more_cards",
    "require_chain": "test_the_operator_demands_that_chains_are_told",
}
_PEER_KEYS = {
    "name": "test_a_peer_of_the_configuration_is_a_tool",
    "url": "test_a_peer_of_the_configuration_is_a_tool",
    "auth": "test_credentials_are_expanded_and_one_that_is_missing_is_the_peers_fault_alone",
    "allow_private": "test_a_peer_at_a_private_address_is_reached_only_if_it_is_said",
    "trust": "test_a_peer_of_low_trust_asks_a_person",
}
_TOOLSET_KEYS = {
    "servers": "test_places.py::test_a_toolset_offers_its_servers_tools_and_agents_and_nothing_else",
    "tools": "test_places.py::test_a_toolset_offers_its_servers_tools_and_agents_and_nothing_else",
    "agents": "test_places.py::test_a_toolset_offers_its_servers_tools_and_agents_and_nothing_else",
    "prefix": "test_naming.py::test_without_a_prefix_tools_have_the_names_that_their_server_gave_them",
    "rename": "test_naming.py::test_names_and_descriptions_are_what_the_operator_writes",
    "descriptions": "test_naming.py::test_names_and_descriptions_are_what_the_operator_writes",
    "mode": "test_search.py::test_two_tools_stand_for_all_and_the_best_fit_comes_first",
}

_EXTENSION = "tests/config/test_extension_manifests.py::"
_EXTENSION_KEYS = {
    "config": "tests/cli/test_ext.py::test_the_operator_sets_what_an_extension_declares",
    "sandbox": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "network": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "fs_read": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "fs_write": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "trust": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "timeout_secs": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "max_concurrency": f"{_EXTENSION}test_the_operator_narrows_the_network_and_adds_paths",
    "idle_secs": "tests/sources/extensions/test_python.py::test_one_that_nobody_calls_ends_and_is_started_again",
}

_SKILL = "tests/sources/test_skills.py::"
_SKILL_KEYS = {
    "config": f"{_SKILL}test_a_setting_is_the_operators_word_then_a_variable_then_a_default",
    "scripts": f"{_SKILL}test_the_operator_can_keep_scripts_from_running",
    "sandbox": f"{_SKILL}test_the_operator_says_whether_there_is_a_sandbox",
    "network": f"{_SKILL}test_the_network_is_reached_if_it_was_asked_for_and_nobody_says_no",
    "fs_read": f"{_SKILL}test_the_operator_opens_paths",
    "fs_write": f"{_SKILL}test_the_operator_opens_paths",
    "trust": f"{_SKILL}test_what_is_of_low_trust_is_read_as_words_of_others",
    "timeout_secs": f"{_SKILL}test_a_program_that_never_ends_is_ended",
}

BEHAVIOUR: dict[str, str] = {
    **{f"skills.NAME.{key}": test for key, test in _SKILL_KEYS.items()},
    **{f"extensions.NAME.{key}": test for key, test in _EXTENSION_KEYS.items()},
    "api_key": f"{SETTINGS}test_api_key_is_a_named_key_without_admin",
    "api_listen": f"{LOAD}test_the_environment_overrides_where_the_node_listens",
    "public_url": f"{API}test_origins.py::test_the_public_address_is_a_name_and_a_page_of_the_node",
    "log_level": f"{API}test_reload.py::test_the_log_level_changes_what_is_logged",
    "include": f"{LOAD}test_included_files_join_their_tables_and_servers",
    **{f"mcp_servers[].{key}": test for key, test in _SERVER_KEYS.items()},
    **{
        f"mcp_servers[].transport.oauth.{key}": f"{OAUTH}{test}"
        for key, test in _OAUTH_KEYS.items()
    },
    "mcp_servers[].transport.oauth.redirect_port": "tests/cli/test_login.py::test_a_sign_in_comes_back_to_the_port_that_the_operator_says",
    "default_model.provider": f"{MODELS}test_the_nodes_own_model_is_that_of_agents_that_name_none",
    "default_model.model": f"{MODELS}test_the_nodes_own_model_is_that_of_agents_that_name_none",
    "default_model.api_key_env": f"{MODELS}test_the_node_may_name_address_and_key_of_its_model_itself",
    "default_model.base_url": f"{MODELS}test_the_node_may_name_address_and_key_of_its_model_itself",
    "providers.NAME.api": f"{MODELS}test_the_node_may_name_address_and_key_of_its_model_itself",
    "providers.NAME.base_url": f"{MODELS}test_an_address_of_the_node_does_not_get_the_usual_key_of_another",
    "providers.NAME.api_key_env": f"{MODELS}test_an_address_of_the_node_does_not_get_the_usual_key_of_another",
    "providers.NAME.api_key": f"{MODELS}test_the_nodes_own_model_is_that_of_agents_that_name_none",
    "providers.NAME.allow_private": f"{MODELS}test_an_address_of_this_machine_is_reached_only_if_the_node_says_so",
    "providers.NAME.retries": "tests/agents/models/test_steps.py::test_retries_are_bounded",
    "providers.NAME.requests_per_minute": f"{MODELS}test_a_provider_is_asked_no_more_often_than_the_node_says",
    "providers.NAME.context_window": "tests/agents/models/test_local.py::test_the_node_says_how_much_a_file_reads_and_how_many_cores_it_gets",
    "providers.NAME.threads": "tests/agents/models/test_local.py::test_each_core_is_a_thread_of_the_process",
    "schedules.timezone": f"{SCHEDULES}test_the_node_has_a_time_zone_for_those_that_name_none",
    "schedules.missed": f"{SCHEDULES}test_of_runs_that_were_missed_one_is_made_up_for_or_none",
    "schedules.min_interval_secs": f"{SCHEDULES}test_the_operator_says_how_far_apart_runs_are",
    "schedules.max_per_caller": f"{SCHEDULES}test_there_are_bounds_on_how_many_how_often_and_for_whom",
    "schedules.max_total": f"{SCHEDULES}test_there_are_bounds_on_how_many_how_often_and_for_whom",
    "triggers[].name": f"{TRIGGERS}test_a_trigger_starts_so_often_in_an_hour_and_says_when_it_does_not",
    "triggers[].event": f"{TRIGGERS}test_an_event_starts_the_agents_that_wait_for_it_and_no_other",
    "triggers[].agent": f"{TRIGGERS}test_an_event_starts_the_agents_that_wait_for_it_and_no_other",
    "triggers[].message": f"{TRIGGERS}test_an_event_starts_the_agents_that_wait_for_it_and_no_other",
    "triggers[].max_per_hour": f"{TRIGGERS}test_a_trigger_starts_so_often_in_an_hour_and_says_when_it_does_not",
    "agents.sandbox": "tests/agents/test_bounds.py::test_the_node_says_how_programs_are_confined_and_shows_what_holds_them",
    "agents.workspace_roots": "tests/config/test_manifests.py::test_the_configuration_says_in_which_roots_workspaces_may_lie",
    **{
        f"a2a.external_agents[].{key}": f"tests/app/a2a/test_peers.py::{one}"
        for key, one in _PEER_KEYS.items()
    },
    "a2a.external_agents[].comes_as": "tests/app/nodes/test_hops.py::test_whoever_is_called_is_known_by_the_key_they_come_in_with",
    "a2a.push.allow_private": "tests/app/a2a/test_push.py::test_the_inside_is_no_target_unless_the_operator_says_so",
    "a2a.max_tasks": "tests/faults/test_tasks_bounds.py::test_the_oldest_finished_task_goes_first_and_one_that_is_under_way_never",
    **{f"a2a.{key}": f"tests/edges/a2a/test_edge.py::{one}" for key, one in _A2A_SERVED.items()},
    **{f"nodes[].{key}": test for key, test in _NODE_KEYS.items()},
    "limits.cells_per_minute": f"{SETTINGS}test_limits_set_rate_burst_and_the_cost_of_a_call",
    "limits.burst": f"{SETTINGS}test_limits_set_rate_burst_and_the_cost_of_a_call",
    "limits.costs.message": f"{API}test_rate.py::test_the_operator_sets_what_each_kind_of_request_costs",
    "limits.costs.call": f"{SETTINGS}test_limits_set_rate_burst_and_the_cost_of_a_call",
    "limits.costs.health": f"{API}test_rate.py::test_the_operator_sets_what_each_kind_of_request_costs",
    **{
        f"budget.max_{window}_usd": "tests/agents/test_spending.py::test_the_node_has_a_budget_for_all_agents_together"
        for window in ("hourly", "daily", "monthly")
    },
    "server.connections": f"{SLOW}test_whoever_waits_longest_makes_room_for_the_next",
    "server.head_secs": f"{SLOW}test_a_head_a_body_and_the_next_request_have_so_much_time_each",
    "server.body_secs": f"{SLOW}test_a_head_a_body_and_the_next_request_have_so_much_time_each",
    "server.idle_secs": f"{SLOW}test_a_head_a_body_and_the_next_request_have_so_much_time_each",
    "server.drain_secs": "tests/faults/test_stopping.py::test_a_call_that_outlasts_the_drain_is_cancelled_and_a_question_stays_open",
    "policy.profile": f"{SETTINGS}test_profile_decides_whether_a_person_may_stand_in_for_a_plan",
    "policy.file": f"{API}test_rules.py::test_another_file_can_be_named",
    "policy.shadow": f"{API}test_rules.py::test_a_shadow_is_on_record_and_changes_nothing",
    "policy.blacklist": f"{SETTINGS}test_blacklist_holds_for_everybody",
    "plugins.gates": f"{COMPAT}test_plugin_gates.py::test_a_gate_from_a_file_refuses",
    "plugins.adapters": f"{COMPAT}test_adapter.py::test_the_seeds_adapter_raises_a_risk",
    "plugins.audit_handlers": f"{COMPAT}test_handlers.py::test_a_plugin_gets_everything_in_order_also_what_it_missed",
    "audit.fsync": f"{SETTINGS}test_fsync_sends_every_commit_to_the_disk",
    "audit.checkpoint_every": f"{SETTINGS}test_checkpoints_are_signed_after_so_many_records_in_the_file_named",
    "audit.checkpoint_seconds": f"{SETTINGS}test_checkpoints_are_signed_after_so_many_seconds",
    "audit.checkpoint_file": f"{SETTINGS}test_checkpoints_are_signed_after_so_many_records_in_the_file_named",
    "audit.anchor.url": f"{ANCHOR}test_every_checkpoint_reaches_the_address_outside",
    "audit.anchor.secret": f"{ANCHOR}test_what_is_sent_is_signed_with_the_secret_that_is_shared",
    "audit.anchor.allow_private": f"{ANCHOR}test_a_private_address_is_an_anchor_only_if_it_is_said",
    "telemetry.endpoint": f"{TRACING}test_a_collector_that_is_named_later_is_told_from_then_on",
    "telemetry.headers": f"{TRACING}test_what_is_counted_is_sent_with_the_headers_that_are_configured",
    "telemetry.traces": f"{TRACING}test_what_is_counted_is_sent_with_the_headers_that_are_configured",
    "telemetry.metrics": f"{TRACING}test_a_collector_that_is_named_later_is_told_from_then_on",
    "telemetry.sample": f"{TRACING}test_a_sample_takes_whole_traces_and_always_the_same_ones",
    "telemetry.interval_secs": f"{TRACING}test_a_call_is_one_span_between_the_peer_and_the_upstream",
    "telemetry.allow_private": f"{TRACING}test_a_private_address_is_a_collector_only_if_it_is_said",
    "audit.jsonl": f"{SETTINGS}test_jsonl_gets_every_record_as_a_line",
    "audit.stdout": f"{SETTINGS}test_stdout_gets_every_record",
    "approvals.timeout_secs": f"{SETTINGS}test_a_question_is_open_for_as_long_as_the_timeout_says",
    "approvals.max_pending": "tests/policy/test_approvals.py::test_the_operator_says_how_many_questions_may_be_open",
    "approvals.ask_clients": "tests/edges/test_approving.py::test_where_the_operator_says_so_no_client_is_asked",
    "approvals.four_eyes": "tests/edges/test_approving.py::test_where_four_eyes_are_wanted_who_asked_may_not_answer",
    "approvals.webhook.url": f"{WEBHOOK}test_a_question_is_sent_signed_and_its_token_answers_it_once",
    "approvals.webhook.secret": f"{WEBHOOK}test_another_secret_makes_what_was_sent_before_worthless",
    "approvals.webhook.allow_private": f"{WEBHOOK}test_nothing_is_sent_inside_unless_the_operator_says_so",
    "auth.require_key": f"{API}test_keys.py::test_without_require_key_this_machine_calls_as_local_mcp_and_never_as_admin",
    **{f"auth.issuer.{key}": f"{API}test_oauth.py::{test}" for key, test in _ISSUER_KEYS.items()},
    **{f"auth.issuer.{key}": f"{API}test_holders.py::{test}" for key, test in _HOLDERS.items()},
    "cluster.node": "tests/cluster/test_nodes.py::test_a_home_that_joins_gets_a_name_and_keeps_it",
    "cluster.address": "tests/cluster/test_nodes.py::test_what_one_node_keeps_is_there_on_every_other",
    "cluster.engine": f"{QUEUES}test_queues_without_a_server_to_keep_them_are_refused_at_the_start",
    "cluster.runs": f"{QUEUES}test_agents_share_a_queue_that_is_bounded_for_each_node_and_each_key",
    "cluster.runs_per_key": f"{QUEUES}test_agents_share_a_queue_that_is_bounded_for_each_node_and_each_key",
    "cluster.runs_per_agent": f"{QUEUES}test_the_operator_bounds_all_agents_and_a_manifest_says_otherwise",
    "storage.url": f"{LOAD}test_storage_is_a_file_of_the_home_or_another_server",
    "secrets.keyring": "tests/host/test_secrets.py::test_the_systems_keyring_can_hold_the_key",
    "guard.max_depth": f"{SETTINGS}test_max_depth_is_how_deep_calls_go",
    "guard.agent_calls": f"{SETTINGS}test_a_chain_and_a_run_have_budgets",
    "guard.chain_usd": "tests/app/nodes/test_budgets.py::test_a_chain_spends_no_more_than_it_may",
    "guard.tool_calls": f"{SETTINGS}test_a_chain_and_a_run_have_budgets",
    "guard.calls_at_once": f"{SETTINGS}test_a_chain_has_so_many_calls_at_once",
    "guard.deadline_secs": f"{SETTINGS}test_a_chain_ends_at_its_deadline",
    "guard.breaker_secs": f"{SETTINGS}test_a_breaker_stays_open_for_as_long_as_it_says",
    "loops.warn": f"{SETTINGS}test_loops_count_identical_calls",
    "loops.block": f"{SETTINGS}test_loops_count_identical_calls",
    "loops.poll_factor": f"{SETTINGS}test_a_polling_tool_may_repeat_itself_more_often",
    "loops.outcome_warn": f"{SETTINGS}test_loops_count_identical_outcomes",
    "loops.outcome_block": f"{SETTINGS}test_loops_count_identical_outcomes",
    "loops.no_progress": f"{SETTINGS}test_a_run_without_progress_ends",
    "results.max_chars": f"{SETTINGS}test_results_are_cut_and_kept_as_it_says",
    "results.max_binary_bytes": f"{SETTINGS}test_results_are_cut_and_kept_as_it_says",
    "results.keep_secs": f"{SETTINGS}test_results_are_cut_and_kept_as_it_says",
    "tools.timeout_secs": f"{SETTINGS}test_a_tool_has_so_many_seconds",
    "tools.disabled": f"{SETTINGS}test_disabled_tools_leave_the_list_but_gate_1_answers",
    "tools.web_fetch.allow_private": f"{BUILTIN}test_private_addresses_are_refused_unless_opened",
    "tools.web_fetch.timeout_secs": f"{BUILTIN}test_a_page_is_cut_at_its_limit_and_has_so_much_time",
    "tools.web_fetch.max_bytes": f"{BUILTIN}test_a_page_is_cut_at_its_limit_and_has_so_much_time",
    "tools.shell_exec.allow_shell": f"{BUILTIN}test_with_a_shell_allowed_it_is_one",
    "tools.shell_exec.programs": f"{BUILTIN}test_programs_that_are_not_listed_do_not_run",
    "tools.shell_exec.timeout_secs": f"{BUILTIN}test_the_operator_sets_time_and_variables",
    "tools.shell_exec.sandbox": f"{SHELL}test_what_has_to_be_sandboxed_does_not_run_where_it_cannot_be",
    "tools.shell_exec.network": f"{SHELL}test_with_a_network_it_reaches_what_the_caller_was_granted",
    "tools.shell_exec.fs_read": f"{SHELL}test_the_operator_opens_paths_to_read_and_to_write",
    "tools.shell_exec.fs_write": f"{SHELL}test_the_operator_opens_paths_to_read_and_to_write",
    "tools.shell_exec.env": f"{BUILTIN}test_the_operator_sets_time_and_variables",
    "tools.tasks.claim_secs": f"{BOARD}test_the_operator_says_how_long_a_claim_holds",
    "tools.files.max_bytes": f"{BUILTIN}test_sizes_are_limited_both_ways",
    "tools.web_search.provider": f"{SEARCH}test_every_engine_is_asked_in_its_own_words_and_understood",
    "tools.web_search.base_url": f"{SEARCH}test_every_engine_is_asked_in_its_own_words_and_understood",
    "tools.web_search.api_key": f"{SEARCH}test_a_key_comes_from_the_secret_store",
    "tools.web_search.allow_private": f"{SEARCH}test_a_private_address_is_asked_only_where_that_is_opened",
    "tools.web_search.timeout_secs": f"{SEARCH}test_a_bad_answer_is_an_error_that_names_engine_reason_and_way_out",
    "tools.web_search.cache_secs": f"{SEARCH}test_the_same_question_is_asked_once_while_its_answer_is_kept",
    "tools.image.max_bytes": f"{IMAGES}test_what_is_no_image_or_too_large_is_an_error_that_says_so",
    "tools.image.max_pixels": f"{IMAGES}test_what_is_no_image_or_too_large_is_an_error_that_says_so",
    "tools.location.latitude": f"{PLACES}test_the_place_that_the_operator_wrote_down_is_told",
    "tools.location.longitude": f"{PLACES}test_the_place_that_the_operator_wrote_down_is_told",
    "tools.location.city": f"{PLACES}test_the_place_that_the_operator_wrote_down_is_told",
    "tools.location.region": f"{PLACES}test_the_place_that_the_operator_wrote_down_is_told",
    "tools.location.country": f"{PLACES}test_a_part_of_the_place_is_enough",
    "tools.location.timezone": f"{PLACES}test_the_place_that_the_operator_wrote_down_is_told",
    "tools.location.service": f"{PLACES}test_a_service_that_the_operator_named_is_asked",
    "tools.location.allow_private": f"{PLACES}test_a_private_address_is_asked_only_where_that_is_opened",
    "tools.location.timeout_secs": f"{PLACES}test_a_service_has_so_much_time",
    **{f"toolsets.NAME.{key}": f"{OFFERING}{test}" for key, test in _TOOLSET_KEYS.items()},
    "definitions.scan": f"{API}test_definitions.py::test_the_operator_says_what_becomes_of_suspicious_words",
    "classify.critical": f"{SERVERS}test_the_operators_words_change_what_foreign_tools_are_taken_for",
    "classify.high": f"{SERVERS}test_the_operators_words_change_what_foreign_tools_are_taken_for",
    "classify.medium": f"{SERVERS}test_the_operators_words_change_what_foreign_tools_are_taken_for",
    "classify.low": f"{SERVERS}test_the_operators_words_change_what_foreign_tools_are_taken_for",
    "classify.tags": f"{SERVERS}test_the_operators_words_change_what_foreign_tools_are_taken_for",
}
