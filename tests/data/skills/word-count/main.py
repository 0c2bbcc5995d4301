"""Counts the words of a text: a request on standard input, an answer on standard output."""

import json
import os
import sys

asked = json.load(sys.stdin)
words = [word for word in asked["input"]["text"].split(os.environ["WORD_MARK"]) if word]
json.dump({"tool": asked["tool"], "words": len(words)}, sys.stdout)
