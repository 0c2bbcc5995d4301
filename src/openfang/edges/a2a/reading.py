"""What stands in a request of A2A 1.0, read strictly: what makes no sense is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from openfang.core.ids import new_id
from openfang.core.tasks import MOST_TASKS, Push, Role, Sent, TaskFilter
from openfang.edges.a2a.convert import read_message, read_metadata, read_state
from openfang.edges.a2a.sdk import errors, pb
from openfang.edges.a2a.versions import OUTPUT_MODES, is_served

if TYPE_CHECKING:
    from collections.abc import Iterable

    from openfang.core.tasks import TaskMessage

_LONGEST_ID: Final = 256
_LONGEST_URL: Final = 2048
_MOST_LISTED: Final = 100
_PAGE: Final = 50
_LAST_MOMENT: Final = 2**63 - 1


class _Limited(Protocol):
    history_length: int

    def HasField(self, field_name: Any, /) -> bool: ...  # noqa: N802, ANN401 - the library's


def sent_of(params: pb.SendMessageRequest, agent: str, version: str) -> Sent:
    """Read a message and what is to be done with it."""
    wanted = params.configuration
    _check_outputs(wanted.accepted_output_modes)
    message = _message(params)
    push = wanted.task_push_notification_config
    return Sent(
        agent=agent,
        message=message,
        context=_id("message.contextId", params.message.context_id),
        task=_id("message.taskId", params.message.task_id),
        metadata=read_metadata(params),
        push=push_of(push, version) if wanted.HasField("task_push_notification_config") else None,
    )


def _message(params: pb.SendMessageRequest) -> TaskMessage:
    written = params.message
    if not written.message_id:
        raise missing("message.messageId")
    if not written.parts:
        raise missing("message.parts")
    _id("message.messageId", written.message_id)
    _check_list("message.referenceTaskIds", written.reference_task_ids)
    _check_list("message.extensions", written.extensions)
    message = read_message(written)
    if message.role is not Role.USER:
        raise wrong("message.role", "is not the user's: a message to an agent is")
    return message


def _check_list(name: str, values: Iterable[str]) -> None:
    listed = list(values)
    if len(listed) > _MOST_LISTED:
        raise wrong(name, f"has more than {_MOST_LISTED} entries")
    for value in listed:
        _text(name, value, _LONGEST_URL)


def _check_outputs(modes: Iterable[str]) -> None:
    wanted = list(modes)
    if wanted and not any(map(is_served, wanted)):
        raise errors.ContentTypeNotSupportedError(
            f"None of {', '.join(wanted)[:_LONGEST_ID]} can be promised. "
            f"Way out: accept {' or '.join(OUTPUT_MODES)}."
        )


def history_of(params: _Limited) -> int | None:
    """Read how much of what was said is wanted; nothing said is all of it."""
    if not params.HasField("history_length"):
        return None
    if params.history_length < 0:
        raise wrong("historyLength", "is less than 0")
    return params.history_length


def filter_of(params: pb.ListTasksRequest, agent: str) -> TaskFilter:
    """Read which tasks are to be listed."""
    limit = params.page_size if params.HasField("page_size") else _PAGE
    if not 1 <= limit <= MOST_TASKS:
        raise wrong("pageSize", f"is not between 1 and {MOST_TASKS}")
    state = read_state(params.status)
    if params.status and state is None:
        raise wrong("status", f"is {params.status}, which is no state of a task")
    return TaskFilter(
        agent=agent,
        context=_id("contextId", params.context_id),
        state=state,
        since=_since(params),
        after=_id("pageToken", params.page_token),
        limit=limit,
    )


def _since(params: pb.ListTasksRequest) -> int | None:
    """Read a moment; one that no clock of ours shows is the last or the first that it does."""
    if not params.HasField("status_timestamp_after"):
        return None
    return max(-_LAST_MOMENT, min(params.status_timestamp_after.ToNanoseconds(), _LAST_MOMENT))


def push_of(config: pb.TaskPushNotificationConfig, version: str) -> Push:
    """Read who is to be told, and how; one without an id gets one."""
    if not config.url:
        raise missing("url")
    return Push(
        id=_id("id", config.id) or new_id("push"),
        task=_id("taskId", config.task_id),
        url=_text("url", config.url, _LONGEST_URL),
        token=_text("token", config.token, _LONGEST_URL),
        scheme=_id("authentication.scheme", config.authentication.scheme),
        credentials=_text("authentication.credentials", config.authentication.credentials, 16_384),
        dialect=version,
    )


def write_push(push: Push) -> pb.TaskPushNotificationConfig:
    """Write who is told. What the request is authenticated by is told to nobody."""
    written = pb.TaskPushNotificationConfig(
        id=push.id, task_id=push.task, url=push.url, token=push.token
    )
    if push.scheme:
        written.authentication.scheme = push.scheme
    return written


def task_id_of(name: str, value: str) -> str:
    """Read the id of a task that must be there."""
    if not value:
        raise missing(name)
    return _id(name, value)


def missing(name: str) -> errors.InvalidParamsError:
    """Something that must be there is not."""
    return wrong(name, "is missing or empty")


def wrong(name: str, why: str) -> errors.InvalidParamsError:
    """Something is not as it must be."""
    return errors.InvalidParamsError(
        f"{name} {why}.", {"errors": [{"field": name, "message": f"{name} {why}."}]}
    )


def _id(name: str, value: str) -> str:
    return _text(name, value, _LONGEST_ID)


def _text(name: str, value: str, most: int) -> str:
    if len(value) > most:
        raise wrong(name, f"has more than {most} characters")
    if value and not value.isprintable():
        raise wrong(name, "has characters that nobody can see")
    return value
