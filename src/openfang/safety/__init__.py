"""Pure checks: values in, a value or a refusal out. Nothing here does I/O."""
