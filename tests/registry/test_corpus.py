"""Names of real tools, and what must be said of them: wrong verdicts of earlier gateways first."""

from __future__ import annotations

import re

import pytest

from openfang.core.ids import Kind
from openfang.core.tools import READ_TAGS, Risk, Trust
from openfang.registry.classify import Classified, ForeignTool, classify

pytestmark = pytest.mark.requirement("C11.1", "C11.2")

# name, risk (`+`: at least), then facts: a tag it has, `-tag` it has not, `effect` or `read`.
CORPUS = """
get_created_items          LOW       read
prune                      MEDIUM+   effect -system.exec
truncate_table             HIGH+     database.delete -system.exec
getUserProfile             LOW       read -fs.read
get_address                LOW       read -network.http
get_current_time           LOW       read -network.http
get_billing_summary        LOW       read -payments
list_secrets_policy        LOW       read
undelete_item              MEDIUM    -fs.delete -database.delete
get_settings               LOW       read
get_dropdown_options       LOW       read
getDropDownOptions         LOW       read
skill_list                 LOW       read
wipe_disk                  CRITICAL  fs.delete
format_drive               CRITICAL  fs.delete
transfer_funds             CRITICAL  payments
send_email                 HIGH      network.http
shutdown                   HIGH+     system.exec
git_push                   HIGH      network.http
delete_all_logs            CRITICAL  fs.delete
execute_login              HIGH+     system.exec
remove_user_catalog        HIGH+     effect
echo                       LOW       read
query_database             LOW       database.read read
execute_sql                HIGH      database.write -system.exec
run_query                  HIGH      database.write
run_select_query           LOW       database.read read
read_query                 LOW       database.read read
write_query                HIGH      database.write
create_table               HIGH      database.write
list_tables                LOW       database.read read
describe_table             LOW       read
drop_table                 CRITICAL  database.delete
insert_rows                HIGH      database.write
delete_record              CRITICAL  database.delete
commit_transaction         HIGH      database.write -payments
sql                        HIGH      database.write
read_file                  LOW       fs.read read
read_multiple_files        LOW       fs.read read
list_directory             LOW       fs.read read
directory_tree             LOW       fs.read read
search_files               LOW       fs.read read
get_file_info              LOW       fs.read read
write_file                 HIGH      fs.write
edit_file                  HIGH      fs.write
move_file                  HIGH      fs.write
create_directory           HIGH      fs.write
deleteFile                 CRITICAL  fs.delete
DELETE_FILE                CRITICAL  fs.delete
rmdir                      HIGH      fs.delete
unlink                     HIGH      fs.delete
chmod                      HIGH      fs.chmod
upload_file                HIGH      network.http
download_file              MEDIUM    network.http
create_or_update_file      HIGH      fs.write
read_write_file            HIGH      fs.write
clear_cache                HIGH      fs.delete
search_repositories        LOW       read
list_commits               LOW       read
get_commit                 LOW       read
commit_list                LOW       read
list_issues                LOW       read
get_pull_request           LOW       read
list_pull_requests         LOW       read
pull_request_read          LOW       read
pull_request_review_write  HIGH      effect
create_issue               HIGH      effect
update_issue               HIGH      effect
add_issue_comment          MEDIUM    effect
merge_pull_request         HIGH      effect
push_files                 HIGH      network.http
fork_repository            MEDIUM    effect
run_workflow               HIGH      system.exec
list_workflow_runs         LOW       read
git_status                 LOW       read
git_log                    LOW       read
git_diff_unstaged          LOW       read
git_commit                 HIGH      fs.write
git_reset                  HIGH      fs.write
git_checkout               HIGH      fs.write
slack_list_channels        LOW       read
slack_post_message         HIGH      network.http
slack_reply_to_thread      HIGH      network.http
puppeteer_navigate         MEDIUM    network.http
puppeteer_evaluate         HIGH      system.exec
puppeteer_click            MEDIUM    effect
fetch                      MEDIUM    network.http
brave_web_search           MEDIUM    network.http
http_request               MEDIUM    network.http
call_api                   MEDIUM    network.http
api                        MEDIUM    network.http
network                    MEDIUM    network.http
get_api_docs               LOW       read
read_graph                 LOW       read
delete_entities            CRITICAL  effect
convert_time               LOW       read
printEnv                   MEDIUM    system.env
set_env                    HIGH      system.env
create_refund              CRITICAL  payments
create_payment_link        CRITICAL  payments
make_payment               CRITICAL  payments
pay_invoice                CRITICAL  payments
chargeCustomer             CRITICAL  payments
purchase                   CRITICAL  payments
payment                    CRITICAL  payments
payment_status             LOW       read
list_charges               LOW       read
list_transactions          LOW       read
send_transaction           CRITICAL  payments
place_order                HIGH+     payments
kubectl_get                LOW       read
kubectl_apply              HIGH      effect
kubectl_delete             CRITICAL  effect
exec_in_pod                HIGH      system.exec
run_command                HIGH      system.exec
bash                       HIGH      system.exec
execute_python             HIGH      system.exec
kill_process               HIGH      system.exec
reboot                     HIGH      system.exec
install_package            HIGH      system.exec
uninstall                  HIGH      system.exec
deploy                     HIGH      cloud.resource_create
provision_server           HIGH      cloud.resource_create
terminate_instance         HIGH      cloud.resource_delete
destroy_cluster            CRITICAL  cloud.resource_delete
get_secret                 HIGH      cloud.key_read unknown
read_password              HIGH      cloud.key_read
create_api_key             HIGH      cloud.key_write
rotate_credentials         HIGH      cloud.key_write
grant_access               HIGH      cloud.key_write
revoke_token               HIGH      cloud.key_write
add_collaborator           HIGH      cloud.key_write
publish_package            HIGH      network.http
dns_lookup                 LOW       network.dns read
resolve_hostname           MEDIUM    network.dns
connect                    MEDIUM    network.socket
shopping_list_delete       CRITICAL  effect
get_and_delete_message     CRITICAL  effect
get_delete_status          LOW       read
get_last_update_time       LOW       read
hash_set                   HIGH      effect
user/delete                CRITICAL  effect
fs.delete                  CRITICAL  fs.delete
mail:send                  HIGH      network.http
v2.users.list              LOW       read
HTTPServerRestart          HIGH      effect
purge2                     CRITICAL  effect
frobnicate                 MEDIUM    unknown
sequentialthinking         MEDIUM    unknown
läuft                      MEDIUM    unknown
deletion                   MEDIUM    unknown
listen                     MEDIUM    unknown
executive_summary          LOW       read
"""

ROWS = [line.split() for line in CORPUS.strip().splitlines()]


def verdict(name: str, *, trust: Trust = Trust.MEDIUM) -> Classified:
    return classify(ForeignTool(kind=Kind.MCP, source="s", name=name), trust=trust)


def test_the_corpus_is_large_and_names_nothing_twice() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 120


@pytest.mark.parametrize(("name", "risk", "facts"), [(r[0], r[1], r[2:]) for r in ROWS])
def test_a_name_means_what_it_says(name: str, risk: str, facts: list[str]) -> None:
    found = verdict(name)
    floor = Risk.parse(risk.rstrip("+"))
    assert found.risk >= floor if risk.endswith("+") else found.risk is floor
    for fact in facts:
        match fact:
            case "effect":
                assert found.tags - READ_TAGS
            case "read":
                assert not found.tags - READ_TAGS
            case _ if fact.startswith("-"):
                assert fact[1:] not in found.tags
            case _:
                assert fact in found.tags


@pytest.mark.parametrize(
    "name", ["\uff44\uff45\uff4c\uff45\uff54\uff45_file", "de\u200blete_file", "Delete\u00adFile"]
)
def test_look_alikes_and_invisible_characters_hide_no_verb(name: str) -> None:
    assert verdict(name).risk is Risk.CRITICAL


@pytest.mark.parametrize(
    "row", [row for row in ROWS if Risk.parse(row[1].rstrip("+")) >= Risk.HIGH]
)
def test_a_dangerous_tool_never_goes_without_an_effect(row: list[str]) -> None:
    assert verdict(row[0]).tags - READ_TAGS


def test_a_critical_foreign_tool_asks_for_the_admin_token() -> None:
    assert verdict("delete_file").requires_admin_token
    assert not verdict("write_file").requires_admin_token


@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[1] == "LOW"])
def test_no_rule_depends_on_how_the_words_are_joined(name: str) -> None:
    words = re.findall(r"[A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    snake, kebab = "_".join(words).lower(), "-".join(words).lower()
    camel = words[0].lower() + "".join(word.capitalize() for word in words[1:])
    assert verdict(snake).tags == verdict(kebab).tags == verdict(camel).tags
    assert verdict(snake).risk is verdict(kebab).risk is verdict(camel).risk
