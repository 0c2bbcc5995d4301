"""The operator's rules: who, which tool, which arguments, which labels, when: allow, ask, deny."""
