-- 查询 MCP 工具调用历史
SELECT * FROM task_audits
WHERE event_type IN ('tool_invocation_start', 'tool_invocation_end')
  AND context->>'source_type' = 'mcp'
ORDER BY created_at DESC;

-- 查询策略违规
SELECT * FROM task_audits
WHERE event_type = 'policy_violation'
  AND context->>'source_type' = 'mcp';
