"""Takes questions from a node and asks at the terminal: python hook.py PORT SECRET NAME.

Put your chat program in the place of `ask`.
"""

import hmac
import json
import sys
import time
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

port, secret, name = sys.argv[1:]
KEY = b64decode(secret.removeprefix("whsec_"))
OLDEST = 300  # seconds


def is_ours(headers, body):
    """Whether the node signed it, and not long ago."""
    sent = headers.get("Webhook-Timestamp", "0")
    signed = f"{headers.get('Webhook-Id')}.{sent}.".encode() + body
    right = "v1," + b64encode(hmac.digest(KEY, signed, "sha256")).decode()
    fresh = abs(time.time() - int(sent)) < OLDEST
    return fresh and hmac.compare_digest(right, headers.get("Webhook-Signature", ""))


def ask(question):
    """Whether the person says yes."""
    asked = f"{question['caller']} wants {question['tool']} {json.dumps(question['arguments'])}"
    return input(f"{asked}\n{question['reason']}\nAllow this call, once? [y/N] ") == "y"


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        good = is_ours(self.headers, body)
        self.send_response(204 if good else 403)
        self.end_headers()
        if good:
            answer(json.loads(body))


def answer(told):
    way = told["answer"]
    token = way["approve" if ask(told["question"]) else "deny"]
    headers = {"Authorization": f"Bearer {token}"}
    urlopen(Request(f"{way['url']}?by={name}", headers=headers, method="POST")).close()  # noqa: S310 - it was signed


server = HTTPServer(("127.0.0.1", int(port)), Hook)
sys.stdout.write(f"listening on port {server.server_port}\n")
sys.stdout.flush()
server.serve_forever()
