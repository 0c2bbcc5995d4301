"""What secrets look like: the shapes of well-known credentials, and the names they are given."""

from __future__ import annotations

from openfang.safety.patterns import WORD_START

_WORD = r"[A-Za-z0-9_\-]"
_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_START = WORD_START
GAP = r"(?:\s|\\+[fnrt])"
_IS = rf"\\*[\"']?{GAP}*[=:]{GAP}*\\*[\"']?"
# Escapes that JSON does not need: what they spell is seen only once they are read.
NEEDLESS = r"\\(?:/|u(?:[^0]|0[^0]|00[^01]|00.[A-F]|000[89acd]))"
# The first group is the secret. The more specific shape stands first, and gives the kind.
SHAPES: tuple[tuple[str, str], ...] = (
    ("private_key", rf"({_PEM}[^\"]*?-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)"),
    ("private_key", rf"({_PEM}(?:{GAP}*[A-Za-z0-9+/=]{{16,}})+)"),
    ("aws_key", rf"{_START}((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}})\b"),
    ("aws_secret", rf"(?i:aws_?secret_?(?:access_?)?key){_IS}([A-Za-z0-9/+=]{{40}})"),
    ("github_token", rf"{_START}(gh[pousr]_[A-Za-z0-9]{{36,}})"),
    ("github_token", rf"{_START}(github_pat_[A-Za-z0-9_]{{22,}})"),
    ("gitlab_token", rf"{_START}(gl(?:pat|dt|rt|ptt|ft|soat|cbt)-{_WORD}{{20,}})"),
    ("slack_token", rf"{_START}(xox[abceoprs]-[A-Za-z0-9\-]{{10,}})"),
    ("slack_token", rf"{_START}(xapp-[0-9]-[A-Za-z0-9\-]{{10,}})"),
    ("slack_webhook", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_\-]{20,})"),
    ("anthropic_key", rf"{_START}(sk-ant-{_WORD}{{16,}})"),
    ("openai_key", rf"{_START}(sk-(?:proj|svcacct|admin|or-v1)-{_WORD}{{20,}})"),
    ("openai_key", rf"{_START}(sk-[A-Za-z0-9]{{20,}})"),
    ("google_key", rf"{_START}(AIza{_WORD}{{35}})"),
    ("google_token", rf"{_START}(ya29\.{_WORD}{{20,}})"),
    ("google_secret", rf"{_START}(GOCSPX-{_WORD}{{20,}})"),
    ("stripe_key", rf"{_START}([sr]k_(?:live|test)_[A-Za-z0-9]{{10,}})"),
    ("stripe_secret", rf"{_START}(whsec_[A-Za-z0-9+/=]{{24,}})"),
    ("huggingface_token", rf"{_START}(hf_[A-Za-z0-9]{{30,}})"),
    ("npm_token", rf"{_START}(npm_[A-Za-z0-9]{{36}})"),
    ("pypi_token", rf"{_START}(pypi-{_WORD}{{50,}})"),
    ("sendgrid_key", rf"{_START}(SG\.{_WORD}{{16,32}}\.{_WORD}{{32,64}})"),
    ("digitalocean_token", rf"{_START}(do[opr]_v1_[a-f0-9]{{64}})"),
    ("telegram_token", rf"{_START}([0-9]{{8,10}}:AA{_WORD}{{33}})"),
    ("azure_key", r"(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}=*)"),
    ("age_key", rf"{_START}(AGE-SECRET-KEY-1[0-9A-Z]{{58}})"),
    ("openfang_key", rf"{_START}(oft?_{_WORD}{{24,}})"),
    ("jwt", rf"{_START}(eyJ{_WORD}{{8,}}\.{_WORD}{{8,}}\.{_WORD}{{8,}}(?:\.{_WORD}+){{0,2}})"),
    (
        "authorization",
        rf"(?i:authorization){_IS}(?i:bearer|basic|token|apikey){GAP}+([A-Za-z0-9._~+/\-=:]{{4,}})",
    ),
    ("bearer_token", rf"{_START}(?i:bearer){GAP}+([A-Za-z0-9._~+/\-]{{12,}}=*)"),
    ("url_password", r"\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/:@?#\"'<>\\]*:([^\s/@\"'<>\\]+)@"),
)
NAME = (
    r"[A-Za-z0-9_.\-]*(?i:password|passwd|passphrase|pwd|secret|token|api[_\-]?key|access[_\-]?key"
    r"|private[_\-]?key|secret[_\-]?key|signing[_\-]?key|encryption[_\-]?key|authorization"
    r"|credentials?|cookie)"
)
NAMED: tuple[tuple[str, str], ...] = (
    ("named_secret", rf'"{NAME}"\s*:\s*"((?:[^"\\]|\\.)+)'),
    ("named_secret", rf'\\+"{NAME}\\+"{GAP}*:{GAP}*\\+"((?:[^"\\]|\\+[^"\\])+)'),
    ("named_secret", rf"[?&]{NAME}=([^&\s\"'#\\]+)"),
)
NUMBERS = (("named_number", rf'\\*"{NAME}\\*"{GAP}*:{GAP}*(-?[0-9][0-9.eE+\-]*)'),)
