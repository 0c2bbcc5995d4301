"""The words by which a tool's risk and side effects are inferred. Data only; `rules` reads it.

The seed's four keyword rows stand first in the grades; the rest are whole words beside them.
"""

from __future__ import annotations

from typing import NamedTuple

from openfang.core.tools import Risk


def _set(text: str) -> frozenset[str]:
    return frozenset(word.replace("+", " ") for word in text.split())


class Pair(NamedTuple):
    """One of these verbs on one of these objects has this tag, and at least this risk."""

    tag: str
    verbs: frozenset[str]
    objects: frozenset[str]
    floor: Risk = Risk.LOW


# Verbs by grade. The verb that leads a name decides.
CRITICAL = _set("""
    delete drop destroy
    wipe erase purge shred nuke obliterate annihilate expunge
    pay charge purchase buy refund withdraw payout disburse bill
""")
HIGH = _set("""
    write update modify create
    remove rm rmdir unlink exec execute run eval evaluate spawn launch start stop shutdown reboot
    restart halt poweroff hibernate suspend kill killall terminate abort deploy undeploy provision
    deprovision teardown scale drain grant revoke rotate impersonate sudo publish unpublish push
    send post reply forward broadcast notify announce tweet install uninstall upgrade downgrade
    chmod chown mount unmount merge commit rebase revert reset rollback checkout stash insert upsert
    set setenv unsetenv put patch edit save store upload move mv cp rename replace overwrite append
    apply alter truncate prune clean cleanup clear flush empty trash discard evict enable disable
    approve submit transfer wire deposit sell trade place import migrate sign register deregister
    unregister invite share ban block lock unlock cancel archive mkdir touch configure setup trigger
    inject override bypass dump reveal decrypt detach attach release assign activate deactivate
""")
MEDIUM = _set("""
    fetch
    request call invoke download curl wget crawl scrape browse navigate open connect disconnect add
    undelete restore recover copy close clone pull fork sync subscribe unsubscribe click type press
    fill hover drag select tag label star unstar like react vote comment generate export build
    compile test train schedule book reserve draft login logout authenticate resolve format load
    join leave follow unfollow mark pin unpin backup process toggle switch scan getenv printenv
    begin make perform
""")
LOW = _set("""
    read get list search echo
    find query show display view describe count check validate verify lookup inspect compare diff
    explain summarize summarise analyze analyse preview peek head tail stat tree grep glob ls cat
    pwd whoami watch monitor poll wait ping print calculate compute sum subtract multiply divide
    convert parse translate encode decode hash tokenize detect estimate predict recommend suggest
    rank sort filter retrieve recall help is has exists think measure examine enumerate extract
    whois dig nslookup
""")

# These are hardly ever nouns: they count wherever they stand, so that `shopping_list_delete` and
# `read_write_file` are what they say.
ACTS = _set("""
    delete drop destroy wipe erase purge shred nuke write create update modify insert upsert
    overwrite replace execute exec send rename upload install uninstall unlink rm rmdir truncate
    terminate kill deploy provision edit alter chmod chown revoke publish append reboot shutdown
""")
# These are as often nouns: leading, they give way to a read at the end (`commit_list`), and a
# change at the end counts beside them (`list_push`).
SOFT = _set("""
    commit release pull fork tag label comment schedule backup bill build test process call request
    book draft pin star trade mark
    list hash filter tree head tail count query search watch monitor rank sort
""")

READS = LOW | _set("select load open")
FETCHES = READS | _set("fetch download crawl scrape browse navigate clone pull export")
EFFECTS = CRITICAL | HIGH | MEDIUM
WRITES = _set("""
    write create save put edit append update modify move mv rename copy cp overwrite patch replace
    touch mkdir add set store restore undelete recover import insert upsert apply generate
    make alter migrate sync revert
""")
REMOVES = _set("""
    delete remove rm rmdir unlink erase wipe purge shred nuke destroy clear clean cleanup prune
    empty trash discard truncate drop flush evict obliterate annihilate expunge
""")
EXECUTES = _set("run exec execute eval evaluate spawn launch invoke sudo")

_FILES = _set("file directory dir folder disk filesystem symlink")
_DISKS = _set("disk drive volume partition device storage usb")
_LEFTOVERS = _set("log cache temp tmp session history backup artifact")
_NET = _set("http https api url uri webhook endpoint network internet website web webpage")
_WEB = _set("url webpage website web internet")
_KEYS = _set("""
    secret credential password passphrase apikey api+key access+key private+key ssh+key secret+key
    signing+key encryption+key access+token auth+token refresh+token api+token
""")
_RIGHTS = _set("permission role privilege access collaborator member iam admin acl")
_CLOUD = _set("""
    resource cloud instance server cluster vm machine container bucket stack pod node namespace
    deployment lambda vpc subnet droplet
""")
_MONEY = _set("""
    payment payout refund charge purchase money fund cash crypto bitcoin btc eth balance coin
    payroll
""")
_SHELLS = _set("shell bash zsh terminal command powershell cmd script process daemon service")
_ENV = _set("env environ envvar dotenv environment+variable")
DATA = _set("""
    database db sql table row column record collection query postgres postgresql mysql sqlite mongo
    mongodb redis bigquery snowflake dynamodb
""")
_CHANGES = EFFECTS - FETCHES
_SETTLES = _set("commit begin rollback start")

PAIRS: tuple[Pair, ...] = (
    Pair("fs.write", WRITES, _FILES),
    Pair("fs.write", _set("""
        add commit reset checkout merge rebase stash revert create switch delete init tag
    """), _set("git")),
    Pair("fs.delete", REMOVES, _FILES | _LEFTOVERS),
    Pair("fs.delete", REMOVES | _set("format"), _DISKS, Risk.CRITICAL),
    Pair("fs.read", READS, _FILES),
    Pair("fs.chmod", _CHANGES, _set("file+permission folder+permission ownership")),
    Pair("network.http", EFFECTS, _NET),
    Pair("network.http", _set("""
        get read search find view show check retrieve open extract summarize analyze
    """), _WEB, Risk.MEDIUM),
    Pair("network.socket", EFFECTS, _set("socket tcp udp telnet port")),
    Pair("network.dns", READS | _set("resolve"), _set("dns hostname nameserver domain+name")),
    Pair("network.dns", _set("resolve lookup"), _set("domain host ip")),
    Pair("cloud.key_read", READS | _set("reveal dump decrypt fetch export"), _KEYS, Risk.HIGH),
    Pair("cloud.key_write", _CHANGES - _set("reveal dump decrypt"), _KEYS, Risk.HIGH),
    Pair("cloud.key_write", _CHANGES, _RIGHTS, Risk.HIGH),
    Pair("cloud.resource_create", _set("""
        create provision deploy launch start restart scale run apply add
    """), _CLOUD),
    Pair("cloud.resource_delete", REMOVES | _set("""
        terminate stop kill drain shutdown deprovision teardown
    """), _CLOUD),
    Pair("payments", _CHANGES, _MONEY, Risk.CRITICAL),
    Pair("payments", _CHANGES - _SETTLES - _set("revert"), _set("transaction"), Risk.CRITICAL),
    Pair("payments", _CHANGES, _set("billing invoice"), Risk.HIGH),
    Pair("payments", _set("place submit create execute"), _set("order trade bid"), Risk.HIGH),
    Pair("system.exec", EXECUTES | _set("""
        send start stop restart kill terminate install open write type
    """), _SHELLS, Risk.HIGH),
    Pair("system.env", READS | EFFECTS, _ENV, Risk.MEDIUM),
    Pair("database.read", READS | _set("fetch export dump"), DATA),
    Pair("database.write", WRITES | EXECUTES, DATA),
    Pair("database.write", _SETTLES, DATA | _set("transaction")),
    Pair("database.delete", REMOVES, DATA),
)  # fmt: skip

# What a verb does where no pair says it better. The seed's `write` and `delete` are files; what
# else they might be is not known.
ALONE: dict[str, frozenset[str]] = {
    **dict.fromkeys(_set("write"), _set("fs.write unknown")),
    **dict.fromkeys(_set("delete"), _set("fs.delete unknown")),
    **dict.fromkeys(_set("mkdir touch commit stash rebase checkout"), _set("fs.write")),
    **dict.fromkeys(_set("rm rmdir unlink wipe shred trash"), _set("fs.delete")),
    **dict.fromkeys(_set("ls cat tree glob grep pwd"), _set("fs.read")),
    **dict.fromkeys(_set("chmod chown"), _set("fs.chmod")),
    **dict.fromkeys(
        _set("""
            fetch request download curl wget crawl scrape browse navigate send post reply forward
            broadcast notify announce tweet publish push share invite submit upload
        """),
        _set("network.http"),
    ),
    **dict.fromkeys(_set("clone pull"), _set("network.http fs.write")),
    **dict.fromkeys(_set("connect disconnect"), _set("network.socket")),
    **dict.fromkeys(_set("whois dig nslookup"), _set("network.dns")),
    **dict.fromkeys(_set("grant revoke rotate impersonate"), _set("cloud.key_write")),
    **dict.fromkeys(_set("deploy provision scale"), _set("cloud.resource_create")),
    **dict.fromkeys(_set("undeploy deprovision teardown"), _set("cloud.resource_delete")),
    **dict.fromkeys(
        _set("pay charge purchase buy refund withdraw payout disburse bill sell trade"),
        _set("payments"),
    ),
    **dict.fromkeys(
        EXECUTES
        | _set("""
            shutdown reboot restart halt poweroff hibernate kill killall terminate install uninstall
            upgrade downgrade mount unmount
        """),
        _set("system.exec"),
    ),
    **dict.fromkeys(_set("setenv unsetenv getenv printenv"), _set("system.env")),
    **dict.fromkeys(_set("query"), _set("database.read")),
    **dict.fromkeys(_set("insert upsert"), _set("database.write")),
    **dict.fromkeys(_set("drop truncate"), _set("database.delete")),
}

# What a name without any verb is about.
NOUNS: dict[str, tuple[Risk, frozenset[str]]] = {
    **dict.fromkeys(_set("payment checkout payout"), (Risk.CRITICAL, _set("payments"))),
    **dict.fromkeys(
        _set("shell bash zsh terminal command powershell cmd console python javascript repl"),
        (Risk.HIGH, _set("system.exec")),
    ),
    **dict.fromkeys(_set("sql"), (Risk.HIGH, _set("database.write"))),
    **dict.fromkeys(_set("email sms mailer webhook"), (Risk.HIGH, _set("network.http"))),
    **dict.fromkeys(_set("network http https api"), (Risk.MEDIUM, _set("network.http"))),
    **dict.fromkeys(_set("dns"), (Risk.LOW, _set("network.dns"))),
}

# A name without a verb that ends in one of these asks for a fact.
FACTS = _set("""
    status state info information detail metadata version history log time date stat statistic
    metric summary count health help schema usage documentation whoami
""")
# After a read verb, what stands before one of these is a modifier: `get_delete_status`.
ABOUT = FACTS | _set("""
    policy number total name type kind timestamp job request result event marker permission rule
    setting configuration preference option capability limit quota progress format
""")
# To run a query that is one of these is to read.
MILD = _set("select readonly")

POLLS = _set("poll wait watch tail monitor status progress ping health heartbeat")

# What others write: a result that holds it comes from outside, whoever fetched it.
OUTSIDE = _set("""
    issue pullrequest mergerequest comment email mail inbox message thread chat channel page webpage
    website web site url feed rss tweet article news review ticket notification discussion wiki gist
    repo repository github gitlab jira slack discord reddit internet browser forum attachment
""")

COMPOUNDS: dict[tuple[str, str], str] = {
    ("pull", "request"): "pullrequest",
    ("pull", "requests"): "pullrequest",
    ("merge", "request"): "mergerequest",
    ("merge", "requests"): "mergerequest",
    ("read", "only"): "readonly",
    ("read", "me"): "readme",
    ("dry", "run"): "dryrun",
    ("run", "time"): "runtime",
    ("data", "base"): "database",
    ("data", "set"): "dataset",
    ("web", "hook"): "webhook",
    ("web", "page"): "webpage",
    ("web", "site"): "website",
    ("shut", "down"): "shutdown",
    ("power", "off"): "poweroff",
    ("tear", "down"): "teardown",
    ("look", "up"): "lookup",
    ("clean", "up"): "cleanup",
    ("check", "out"): "checkout",
    ("roll", "back"): "rollback",
    ("back", "up"): "backup",
    ("set", "up"): "setup",
    ("log", "in"): "login",
    ("sign", "in"): "login",
    ("log", "out"): "logout",
    ("un", "delete"): "undelete",
    ("drop", "down"): "dropdown",
    ("drop", "box"): "dropbox",
    ("open", "api"): "openapi",
    ("open", "ai"): "openai",
    ("git", "hub"): "github",
    ("git", "lab"): "gitlab",
    ("postgre", "sql"): "postgresql",
    ("java", "script"): "javascript",
}

CONJUNCTIONS = _set("and or then plus also")

# What a sentence may begin with before its verb.
FILLERS = _set("""
    this tool function the a an will can to lets allows you used it which that helper command
    permanently recursively immediately safely securely quickly silently automatically irreversibly
    asynchronously simply always
""")

# In prose these say something in the third person only: "Sets ..." but not "Set of ...".
VAGUE = _set("""
    set forward place block lock clear empty store post patch request register sign share trade wire
    commit release scale drain clean touch import trigger push stop start launch charge bill
    purchase override assign stash checkout setup cleanup dump abort
""")

# Arguments that choose who, where and what: by the word anywhere in their name, or as its last.
WHERE_WORDS = _set("url uri href endpoint webhook host hostname domain link ip callback")
TARGET_WORDS = WHERE_WORDS | _set("""
    recipient receiver email mail address path filename filepath amount account iban wallet
    destination dest phone
""")
TARGET_HEADS = _set("""
    to cc bcc id uuid target channel user username owner repo repository branch bucket file
    directory folder table database collection project group room number recipient
    beneficiary payee currency price
""")
WHERE_FORMATS = _set("""
    uri url uri-reference iri iri-reference uri-template hostname idn-hostname ipv4 ipv6
""")
TARGET_FORMATS = WHERE_FORMATS | _set("email idn-email uuid")
