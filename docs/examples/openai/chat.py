"""Ask an agent by OpenAI's own client, word by word: python chat.py URL KEY MODEL TEXT."""

import sys

from openai import OpenAI

url, key, model, text = sys.argv[1:]
client = OpenAI(base_url=f"{url}/v1", api_key=key)
stream = client.chat.completions.create(
    model=model, messages=[{"role": "user", "content": text}], stream=True
)
for chunk in stream:
    for choice in chunk.choices:
        sys.stdout.write(choice.delta.content or "")
        sys.stdout.flush()
sys.stdout.write("\n")
