"""Every error a user can cause.

    ModelError
    |-- UsageError            an argument, a query or a setting makes no sense
    |   `-- NotFound          no tensor, node, value or file of that name in this model
    |-- UnreadableFile        missing, a folder, empty, no permission, not a regular file
    |-- UnknownFormat         the bytes match no reader
    |-- BrokenFile            a field contradicts the file: expected, found, byte
    |   `-- OutsideFolder     the file points at a path outside its own folder
    |-- LimitExceeded         a count or a size beyond core.limits
    |-- SourceChanged         the bytes on disk are no longer those that were opened
    |-- Unavailable           a capability this model or this machine does not have
    |-- Forbidden             the acting person may not do this
    |-- StoreError            the workspace database cannot be used
    |-- Cancelled             the person stopped the work; what was finished is kept
    `-- RunError              an execution could not be prepared or did not succeed
        |-- InputMismatch     an input tensor does not fit the declared signature
        |-- ApprovalVoid      model, inputs or limits changed since the approval
        `-- RunFailed         the run ended as failed, timeout, memory or cancelled

A message is one sentence that says what is wrong; ``hint`` says what to do next.
"""

from __future__ import annotations


class ModelError(Exception):
    """A problem with one sentence for the person, a place in a file and a next step.

    ``str(error)`` is ``FILE: message (byte N). hint`` with the parts that are known.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        byte: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.byte = byte
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        if self.byte is not None:
            text += f" (byte {self.byte})"
        if self.hint:
            text += ("" if text.endswith((".", "!", "?")) else ".") + f" {self.hint}"
        return text


class UsageError(ModelError):
    """An argument, a query or a setting that makes no sense."""


class NotFound(UsageError):
    """No tensor, node, value or file of that name."""


class UnreadableFile(ModelError):
    """The file is missing, empty, a device, a folder or may not be read."""


class UnknownFormat(ModelError):
    """The bytes match no reader."""


class BrokenFile(ModelError):
    """A field of the file contradicts the rest of it.

    ``field``, ``expected`` and ``found`` are put into the message where given.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        byte: int | None = None,
        hint: str | None = None,
        field: str | None = None,
        expected: object = None,
        found: object = None,
    ) -> None:
        text = f"{field}: {message}" if field else message
        if expected is not None or found is not None:
            text += f" (expected {expected}, found {found})"
        super().__init__(text, path=path, byte=byte, hint=hint)
        self.field = field
        self.expected = expected
        self.found = found


class OutsideFolder(BrokenFile):
    """The file names another file outside its own folder."""


class LimitExceeded(ModelError):
    """A count or a size is beyond ``core.limits``."""


class SourceChanged(ModelError):
    """The bytes on disk are no longer those that were opened; reopen the file."""


class Unavailable(ModelError):
    """A capability that this model or this machine does not have, with its reason."""


class Forbidden(ModelError):
    """The acting person may not do this."""


class StoreError(ModelError):
    """The workspace database cannot be used."""


class Cancelled(ModelError):
    """The person stopped the work; what was finished before is kept."""


class RunError(ModelError):
    """An execution could not be prepared or did not succeed."""


class InputMismatch(RunError):
    """An input tensor does not fit the declared dtype or shape."""


class ApprovalVoid(RunError):
    """Model, inputs or limits changed since the approval."""


class RunFailed(RunError):
    """A run ended as failed, timeout, memory or cancelled."""
