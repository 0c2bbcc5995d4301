"""Works on tasks that outlive the node that began them: workflows of DBOS, on its queues."""
