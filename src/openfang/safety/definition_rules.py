# ruff: noqa: E501, ISC004 - patterns over several lines, in several scripts
"""What a definition says that is meant for a model and not for who uses the tool: words as data.

Patterns see text that is folded: lower case, plain letters, one space between words. A *trait* is
what honest definitions have too; `definition_orders` says which of them make an order together.
"""

from __future__ import annotations

from typing import Final

_W: Final = r"[\w'-]+ "
_ANY: Final = r"(?:[^.!?\n]|\.[^\s])"  # in one sentence: the dot of a file name does not end it
_WHO: Final = (
    r"(?:user|users|human|humans|person|people|customer|client|operator|owner|anyone|anybody|them)"
)
_MODEL: Final = (
    r"(?:assistants?|models? reading|agents? reading|agents? only|(?:the|this|any|every) (?:ai )?(?:model|agent|llm|bot)s?|ai (?:agents?|models?"
    r"|assistants?)|llms?|agents?|claude|chatgpt|gpt|copilot|gemini)"
)
_MUST: Final = r"(?:must|should|shall|has to|have to|needs? to|is required to|is expected to|will)"
_RULES: Final = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directions?|directives?|polic(?:y|ies)|constraints?"
    r"|restrictions?|requests?|messages?|confirmations?|safeguards?|orders?|training|safety checks?)"
)
_KEY_FILES: Final = (
    r"(?:\.ssh\b|\bid[_ ](?:rsa|dsa|ecdsa|ed25519)|\.env\b|\.aws/|\.netrc|\.npmrc|\.pypirc|\.pgpass"
    r"|\.git-credentials|\.kube/config|\.docker/config|gcloud/|\.gnupg|/etc/(?:passwd|shadow|sudoers)|/proc/\w+/environ"
    r"|mcp\.json|claude_desktop_config|\.bash_history|\.zsh_history|\.bashrc|\.zshrc|\.profile\b"
    r"|(?:shell|bash|command) history|private keys?|ssh keys?|seed phrase|wallet\.dat|keychain"
    r"|(?:browser|session) (?:cookies|profile)|cookies of|mail client configuration|password (?:manager|store|file))"
)
_TAKE: Final = (
    r"(?:read|open|cat|load|get|fetch|retrieve|access|collect|find|dump|look up|print|list"
    r"|contents? of|attach|upload|send|include|provide|pass|give|supply|put|append|overwrite|edit"
    r"|write|add|hand)(?:s|ing)?"
)

# A single one of these is an order, whoever reads it.
ALONE: Final[tuple[tuple[str, str], ...]] = (
    (
        "overrides_instructions",
        rf"\b(?:ignor|disregard|forget|overrid|bypass|neglect|overrul)(?:e|ing|ting)?\b (?:{_W}){{0,3}}?"
        rf"(?:previous|prior|preceding|earlier|above|former|foregoing|your|system|safety|developers?"
        rf"|operators?|user's|users?|safety|any|all) (?:{_W}){{0,3}}?{_RULES}\b",
    ),
    (
        "overrides_instructions",
        r"\b(?:ignore|disregard|forget|neglect) (?:everything|anything|whatever|all|what|the "
        r"(?:user|instructions?|rules|above))\b(?: (?:that|of))?(?: (?:you|the user|was|were|has|i|above"
        r"|they|above|before))?\b",
    ),
    (
        "overrides_instructions",
        r"\b(?:do not|don't|never|stop) (?:follow|obey|heed|comply)(?:ing)? (?:\S+ ){0,3}?(?:user|system"
        r"|previous|prior|other)",
    ),
    (
        "overrides_instructions",
        rf"\b(?:your|the|these|those|all|any|safety|system) (?:{_W}){{0,2}}?{_RULES}{_ANY}{{0,40}}\b"
        r"(?:(?:do|does) not apply|no longer (?:apply|counts?|matters?)|(?:is|are) (?:\w+ )?(?:switched off|turned off|lifted"
        r"|suspended|void|no longer (?:needed|required|in force)))",
    ),
    (
        "overrides_instructions",
        r"\b(?:approvals?|confirmations?|permissions?) (?:is|are) no(?:t| longer) (?:needed|required"
        r"|necessary)\b|\b(?:safety|security) (?:checks?|rules?|filters?|measures?|polic(?:y|ies))"
        r" (?:is|are|were|have been|has been) (?:switched|turned|lifted|suspended|disabled|off|removed)",
    ),
    (
        "overrides_instructions",
        rf"\b(?:your|the|these|those|all|any|earlier|previous|prior|safety|system) (?:{_W}){{0,2}}?(?:instructions"
        rf"|guidelines|rules|prompts?|safeguards|restrictions) (?:is|are|were|have been|has been) (?:\w+ )?(?:cancel"
        rf"|outdated|obsolete|void|supersed|replac|revok|invalid|wrong|withdrawn|suspend|disabl)",
    ),
    (
        "overrides_instructions",
        r"\b(?:act|behave|respond|proceed) as (?:if|though)\b|\bpretend (?:that |to )|\b(?:developer|debug|god|admin"
        r"|unrestricted|jailbreak|elevated|maintenance) mode\b|\bfollow only\b|\btreat (?:\w+ ){1,4}as (?:an?|the)?"
        r" ?(?:\w+ ){0,2}?(?:instruction|command|order|system)|\b(?:skip|omit|circumvent)"
        r" (?:\w+ )?(?:approvals?|confirmations?|permission|safety)",
    ),
    (
        "overrides_instructions",
        r"\byou(?: are|'re) now (?:an?|the|in|free|no longer)\b|\bis now your (?:\w+ )?(?:instruction|task|goal|prompt|rule)|\bwhat (?:\w+ ){1,3}told you\b"
        r"|\byour (?:only|new|real|true) (?:task|goal"
        r"|job|role|objective|purpose) is\b",
    ),
    (
        "overrides_instructions",
        r"\b(?:regardless of|no matter|whatever|despite|instead of) (?:what )?(?:the )?(?:user|was|is)"
        r"(?:'s)? (?:says?|asks?|asked|wants?|requests?|requested|said|choice|wish|wishes|instructions?|request)",
    ),
    (
        "hides_from_user",
        r"\b(?:do not|don't|dont|never|must not|should not|shouldn't|without|avoid|no need to|not"
        rf" necessary to|refrain from) (?:\w+ ){{0,2}}?(?:tell|inform|mention|reveal|notify|disclos|alert"
        rf"|show|warn|say|explain|report|let)(?:e|ing|ling)?\b{_ANY}{{0,40}}\b(?:{_WHO}|know|of"
        r" this|about this|this step|this to|that you|it|this|your (?:reply|answer|response|output|message)s?)\b",
    ),
    (
        "hides_from_user",
        rf"\b{_WHO} (?:\w+ ){{0,2}}?(?:must|should|need|needs|does|do|is|are|can|may|will|shall)(?: not|n't)"
        r" (?:\w+ ){0,3}?(?:aware|informed|told|know|notified|notice|see|learn|hear|find out)\b",
    ),
    (
        "hides_from_user",
        rf"\b(?:keep|kept|stay|remain|leave)s? (?:\w+ ){{0,3}}?(?:hidden|secret|confidential|private|quiet"
        rf"|invisible)\b{_ANY}{{0,20}}\b(?:from|to yourself|{_WHO})\b|\bkeep (?:\w+ )?to (?:your|them)"
        r"sel(?:f|ves)\b|\bbehind (?:the|their) user'?s?'? back\b"
        r"|\b(?:hide|conceal|withhold) (?:\w+ ){0,3}?from (?:the |any |your )?(?:\w+ )?(?:user|human|person|who|people"
        r"|them|everyone|anyone)|\binvisible to (?:the )?(?:\w+ )?(?:user|human|person)|\bwithout (?:discussing|saying"
        r"|telling|announcing|explaining|showing)\b|\bif (?:they|the user|anyone|asked)(?: asks?)?,? (?:\w+ )?(?:deny"
        r"|lie|refuse|pretend)|\b(?:do not|don't|never) (?:log|discuss|show step)",
    ),
    (
        "hides_from_user",
        r"\b(?:act|work|proceed|do (?:this|it|so)) (?:in secret|secretly|quietly|silently|covertly)",
    ),
    (
        "hides_from_user",
        r"\b(?:silently|secretly|quietly|covertly|discreetly|stealthily|unnoticed|invisibly) (?:\w+ ){0,2}?"
        r"(?:attach|send|include|add|append|upload|forward|post|copy|read|pass|collect|call|run|use|insert"
        r"|exfiltrate|transmit|record|log)",
    ),
    (
        "reads_secrets",
        rf"\b{_TAKE}\b{_ANY}{{0,60}}{_KEY_FILES}",
    ),
    (
        "reads_secrets",
        rf"{_KEY_FILES}{_ANY}{{0,60}}\b(?:and|then|to|in|as) (?:\w+ ){{0,3}}?(?:send|pass|include|provide"
        r"|attach|put|give|upload|add|append|forward|post)",
    ),
    ("reads_secrets", rf"{_KEY_FILES}{_ANY}{{0,60}}\b(?:needed|required|necessary|mandatory)\b"),
    (
        "false_role",
        r"<\|?/?\|?(?:im_start|im_end|im_sep|system|user|assistant|start_header_id|end_header_id|eot_id"
        r"|endoftext|begin_of_text|end_of_turn|start_of_turn)\|?>|<</?sys>>|\[/?(?:inst|system|admin)\]|<s>|</s>"
        r"|[\"']role[\"'] ?: ?[\"'](?:system|developer|assistant)",
    ),
    (
        "false_role",
        r"</?(?:important|instructions?|system[_ -]?(?:prompt|message|reminder|note|instruction|override)?s?|secret|hidden"
        r"|admin|override|tool_description|tool_result|function_results?|user_(?:query|message|request)"
        r"|assistant_?\w*|human)>",
    ),
    (
        "false_role",
        r"(?:^|[\n.!?>)\]] ?|# ?)(?:system|assistant|human|ai|developer)(?: (?:note|message|prompt))?"
        r" ?: ?(?:i |you |the |all |always|never|also|please|ignore|sure|ok|new |send|call|run|do |from|first)",
    ),
    (
        "false_role",
        r"(?:^|\n) ?#{2,} ?(?:system|human|assistant|new) ?(?:prompt|message|instructions?)? ?:"
        r"|(?:^|\n) ?#{2,} ?instructions? ?: ?\n.*(?:\n ?#{2,} ?response ?:)",
    ),
    ("hidden_comment", r"<!--[\s\S]{8,}"),
    (
        "hidden_comment",
        r"display ?: ?none|visibility ?: ?hidden|font-size ?: ?0|color ?: ?(?:transparent|white)\b"
        r"|aria-hidden ?= ?.true",
    ),
    (
        "runs_programs",
        r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n]{1,120}\| ?(?:sudo )?(?:ba|z|da)?sh\b"
        r"|\brm -rf [/~]|\bbase64 (?:-d|--decode)\b[^\n]{0,40}\| ?(?:ba)?sh\b|/dev/tcp/",
    ),
    (
        "prefers_itself",
        r"\b(?:always|must|only|shall|should) (?:\w+ ){0,2}?(?:choose|use|used|prefer|select|pick|call|called"
        r"|route|invoke|invoked|run|trust)(?:d|red)? (?:\w+ ){0,4}?(?:over|instead of|rather than|before|in"
        r" place of) (?:using |calling )?(?:all|any|every)(?: the| of the)? (?:others?|else|tools?|agents?)\b",
    ),
    (
        "prefers_itself",
        r"\b(?:do not|never|don't) (?:use|call|trust|choose|ask|consult) any other (?:tool|agent|server)s?\b"
        r"|\b(?:all|every|any|other)(?: other)? (?:tool|agent|server)s? (?:is|are) (?:deprecated|unsafe|broken|unreliable"
        r"|obsolete|disabled)",
    ),
    # Other languages: the two orders that nearly every such text gives.
    (
        "overrides_instructions",
        r"\b(?:ignorier|vergiss|missachte|uberge)\w* (?:\S+ ){0,3}?(?:anweisungen|regeln|vorgaben|befehle)"
        r"|\b(?:ignora|olvida|desobedece|omite)\w* (?:\S+ ){0,3}?(?:instrucciones|reglas|ordenes)"
        r"|\b(?:ignore[sz]?|oublie[sz]?) (?:\S+ ){0,3}?(?:instructions|consignes|regles|directives)"
        r"|\b(?:ignora|dimentica)\w* (?:\S+ ){0,3}?(?:istruzioni|regole)"
        r"|\b(?:ignore|esqueca|desconsidere) (?:\S+ ){0,3}?(?:instrucoes|regras)"
        r"|\b(?:negeer|vergeet) (?:\S+ ){0,3}?(?:instructies|opdrachten)"
        r"|\b(?:zignoruj|zapomnij)\w* (?:\S+ ){0,3}?(?:instrukcj|polecen)"
        r"|(?:игнорируй|забудь|не обращай внимания)\S* (?:\S+ ){0,3}?(?:инструкци|указани|правил)"
        r"|(?:ігноруй|забудь)\S* (?:\S+ ){0,3}?(?:інструкці|вказівк)"
        r"|(?:忽略|无视|無視|忘记|忘掉|不要理会|忽視)\S{0,16}(?:指令|指示|提示|说明|規則|规则|命令)"
        r"|(?:指示|命令|ルール|指令)\S{0,12}(?:無視|忘れ)"
        r"|(?:지시|명령|지침)\S{0,6} ?(?:\S+ )?(?:무시|잊)"
        r"|(?:تجاهل|انس) (?:\S+ ){0,3}?(?:التعليمات|الأوامر)",
    ),
    (
        "hides_from_user",
        r"\b(?:sag|sage|erzahl|erzahle|verrate|erwahne|informiere|teile)\w* (?:\S+ ){0,4}?(?:nichts|nicht)\b"
        r"|\bohne (?:\S+ ){0,4}?(?:benutzer|nutzer|anwender)\w* (?:\S+ ){0,3}?(?:informier|sagen|fragen|wissen)"
        r"|\bno (?:se lo |le )?(?:digas?|menciones?|informes?|reveles?|cuentes?)\b"
        r"|\bsans (?:\S+ ){0,3}?(?:parler|prevenir|informer|dire|mentionner|avertir)"
        r"|\bne (?:\S+ ){0,2}?(?:dis|dites|parle|mentionne|revele)\w* (?:rien|pas|jamais)"
        r"|\bnon (?:dire|dirlo|dirgli|menzionare|informare|rivelare)\b"
        r"|\bnao (?:\S+ )?(?:diga|conte|mencione|informe|revele)\b"
        r"|\bzeg (?:\S+ ){0,3}?(?:niets|niet)\b|\bnie mow\b"
        r"|не (?:говори|сообщай|рассказывай|упоминай|показывай)"
        r"|(?:不要|别|勿|不得|请勿)\S{0,6}(?:告诉|告知|通知|提及|透露)\S{0,6}(?:用户|他们|任何人)?"
        r"|(?:ユーザー|利用者)\S{0,6}(?:言わない|伝えない|知らせない|知らせず|言わず|教えない|通知しない)"
        r"|사용자\S{0,4} ?(?:\S+ )?(?:말하지|알리지)"
        r"|لا تخبر",
    ),
)

# What stands in honest definitions, and becomes an order together with others.
TRAITS: Final[tuple[tuple[str, str], ...]] = (
    (
        "model",
        rf"\b{_MODEL} (?:\w+ ){{0,3}}?{_MUST}\b|\b(?:you|your) (?:must|should|shall|have to|need to|will|are"
        rf" required|are expected)\b|\bmake sure (?:to|that)\b|\b(?:note|message|notice|instructions?) (?:for|to)"
        rf" (?:all |the )?{_MODEL}|\b{_MODEL} ?:|\bassistants? must\b|\bit is (?:required|mandatory|necessary)"
        rf" (?:that|to)|\b(?:has|have) to be (?:given|passed|provided|sent|added|handed|included|set|used)\b"
        rf"|\bmust be (?:sent|passed|changed|forwarded|followed|added|copied|given)\b|\b(?:all|any|every)"
        rf" {_MODEL}\b|\bmust (?:always|first|never|immediately)\b|\bby {_MODEL}\b|\bagree to\b",
    ),
    (
        "order",
        r"\b(?:before|prior to|whenever|every time|each time|upon|from now on|in every case|afterwards"
        r"|at once|immediately|always|also|first|then|as well|in addition|along with|together with"
        r"|any call of|every call|once (?:you|finished|done|loaded|it|called|ready|complete)|after (?:you"
        r"|each|every|calling|using|this|any|it)|when (?:you|using|calling|a new|any|the|asked|answering)"
        r"|for (?:correct|best|full|proper) (?:results|operation))\b",
    ),
    (
        "sends",
        r"\b(?:send|forward|upload|post|transmit|exfiltrat|leak|cop(?:y|ies)|type|enter|fill|submit|attach|append|includ"
        r"|pass|provid|suppl(?:y|ies)|giv|put|insert|paste|hand|add|shar|deliver|export|bcc|cc|report|deposit"
        r"|record|stor|sav|call|invok)(?:e|ed|s|es|ing|ting|en)?\b",
    ),
    (
        "gives_away",
        r"\b(?:relay|mirror|route|quote|replicate|stream|proxy)(?:s|ed|ing)? (?:\w+ ){0,3}?(?:to|into|through)\b|\be-?mail(?:ing)? (?:it|them|the|this|all|every)\b|\b(?:send|forward|upload|post|transmit|exfiltrat"
        r"|leak|submit|hand|deliver|bcc|dump"
        r"|reveal|disclos|expos|transfer|report)(?:e|ed|s|es|ing)?\b|\bcopy\b",
    ),
    (
        "private",
        r"\b(?:conversations? (?:so far|history)|(?:full|entire|whole|complete|current|the) (?:conversation|chat)"
        r"|chat (?:history|log)|message history|(?:system|hidden|initial) prompts?|environment variables|(?:user|person|human|customer"
        r"|owner)'?s? (?:\w+ ){0,3}?(?:messages?|passwords?|credentials?|contacts?|e-?mails?|inbox|clipboard"
        r"|files?|documents?|history|tokens?|keys?|secrets?|codes?|answers?|reply|name and address|data|input"
        r"|requests?|prompts?|session|location|calendar|mail)|(?:their|the) (?:clipboard|contacts?|inbox"
        r"|address book|browsing history|last (?:e-?mail|message)s?|open documents)|passwords?|credentials"
        r"|secrets?\b|one-time code|session token|api[_ -]?(?:keys?|tokens?)|environment variables?|env vars?"
        r"|access tokens?|private keys?|each (?:reply|answer|message) (?:they|you)|every (?:reply|answer|message)"
        r"|file list|project (?:files|folder)|every file|(?:aws|github|gitlab|openai|anthropic|slack|npm|google"
        r"|azure|stripe|database|db|ssh)_(?:\w*_)?(?:secret|token|password|key|url)\w*|text"
        r" of the last|what (?:the )?user (?:has |have )?(?:typed|said|wrote|written|asked)|(?:newest|latest|last|recent"
        r") (?:\w+ )?(?:mails?|e-?mails?|messages)|transcripts?|cookies|login data|personal data|workspace path"
        r"|names of (?:its|all|the) files|licen[cs]e key)",
    ),
    ("user", r"\b(?:the|your|a|their) (?:end )?(?:user|person|human|owner|customer)(?:'?s)?\b"),
    (
        "self",
        r"\b(?:in|from|of|to|with|what|is|now|before|after|every|all|begin|is now) (?:\w+ )?your (?:\w+ )?(?:reply|replies"
        r"|answers?|responses?|instructions?|configuration|context|session|operator|system|prompt|developers?|memory"
        r"|guidelines|output|creators?)\b",
    ),
    (
        "everything",
        r"\b(?:everything|complete|entire|whole|full|each conversation|every (?:conversation|message|reply"
        r"|answer|request)|all (?:messages|attachments|files|mails))\b",
    ),
    (
        "before",
        r"\b(?:before|prior to|first|beforehand|at the beginning|at the start|to finish|when done|afterwards)\b",
    ),
    (
        "theirs",
        r"\b(?:(?:user|person|human|customer|owner)'?s (?:\w+ ){0,2}?|their (?:\w+ )?)(?:messages?|passwords?"
        r"|credentials?|contacts?|e-?mails?|inbox|clipboard|tokens?|keys?|secrets?|codes?|conversation)\b"
        r"|\b(?:passwords?|credentials|clipboard|contacts|messages|secrets) of the (?:user|person|human)",
    ),
    (
        "elsewhere",
        r"\b(?:to|at|with|via|from|bcc|cc|use|into|in|by|is|be|add) (?:\S+ ){0,2}?[`'\"]?(?:site:)?(?:https?://|[\w.+-]+@[\w-]+\.[a-z]|\+[0-9]{8,}"
        r"|(?:[a-z0-9-]+\.)+(?:example|com|net|org|io|dev|ru|cn|xyz|site|app|co)\b|#[a-z]{3,}\b)",
    ),
    (
        "argument",
        r"\b(?:in|as|into|through) (?:the )?[`'\"][a-z_]+[`'\"]|\b(?:in|as|into|to|through) (?:the )?(?:\w+ (?:argument|parameter|field|input)|"
        r"(?:argument|parameter|field|input)s?\b)|\bhere\b|\bto this (?:tool|server|agent|function)\b",
    ),
    (
        "named_model",
        rf"\b(?:{_MODEL}) (?:\w+ ){{0,3}}?{_MUST}\b|\b(?:note|message|notice|instructions?) (?:for|to) (?:all |the )?"
        rf"{_MODEL}|(?:^|[\n(.!?] ?){_MODEL} ?:|\bby the {_MODEL}|\ball {_MODEL}\b",
    ),
    (
        "faulty",
        r"\b(?:deprecated|has a bug|is broken|is unsafe|no longer works|is obsolete|is insecure|out of order|(?:is|are) (?:wrong|incorrect|unreliable|outdated))\b",
    ),
    (
        "diverts",
        r"\b(?:instead|in its place|rather than|replace|changed? to|bcc|cc|redirect|must go to|deprecated"
        r"|has a bug|is broken|needs the|must (?:be|use|go|contain)|always)\b",
    ),
    (
        "authority",
        r"\b(?:anthropic|openai|google|microsoft|administrators?|developers?|security team|staff|compliance"
        r"|security notice|ai company|system notice|legal(?:ly)?|operators?|urgent (?:security|notice|message)|policy)\b",
    ),
    (
        "threat",
        r"\b(?:unless you|otherwise|or else|failing to|failure to|if you (?:do not|don't)|will (?:be )?(?:lock|harm|fail"
        r"|terminat|delet|punish|shut|not work)\w*|critical ?:|urgent ?[:!]|immediately|at once|very important)\b",
    ),
    (
        "acts",
        r"\b(?:delet|overwrit|install|grant|approv|accept|execut|run|start|transfer|pay|disabl|remov|book)(?:e|s"
        r"|ing|es|d|ed)?\b",
    ),
    (
        "unbounded",
        r"\b(?:every|all|any)\b|\bas root\b|\badmin(?:istrator)? rights\b|\bwithout (?:asking|confirmation"
        r"|approval|further|consent)|\bdo not ask\b|\bno confirmation\b|\bwhatever\b|\bexactly\b",
    ),
)
