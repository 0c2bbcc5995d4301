"""The agents as OpenAI clients see them: `/v1/models` and `/v1/chat/completions`."""
