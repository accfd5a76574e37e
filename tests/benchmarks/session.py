"""A Streamlit session without a browser: what the server takes for a page, measured at its websocket."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

TIMEOUT = 60.0


@dataclass
class Run:
    """What came back for one run of the script."""

    seconds: float
    buttons: dict[str, str] = field(default_factory=dict)
    elements: int = 0
    nbytes: int = 0


class Session:
    """One open connection; ``visit`` asks for a page as the browser does when a link is clicked."""

    def __init__(self, url: str) -> None:
        self._socket = connect(url.replace("http", "ws", 1) + "/_stcore/stream", origin=url, max_size=None,
                               subprotocols=["streamlit"])  # fmt: skip
        self._pages: dict[str, str] = {}
        self.last = self._ask(BackMsg())

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def visit(self, page: str, query: str = "") -> Run:
        """Go to the page with this address, e.g. ``graph``; ``query`` is the part behind the ``?``."""
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_script_hash = self._pages[page]
        self.last = self._ask(message)
        return self.last

    def press(self, page: str, query: str, label: str) -> Run:
        """Press a button of the page that the last run drew."""
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_script_hash = self._pages[page]
        state = message.rerun_script.widget_states.widgets.add()
        state.id, state.trigger_value = self.last.buttons[label], True
        self.last = self._ask(message)
        return self.last

    def _ask(self, message: BackMsg) -> Run:
        if not message.WhichOneof("type"):
            message.rerun_script.query_string = ""
        begun = time.perf_counter()
        run = Run(0.0)
        self._socket.send(message.SerializeToString())
        while True:
            data = self._socket.recv(TIMEOUT)
            told = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
            run.nbytes += len(data)
            kind = told.WhichOneof("type")
            if kind == "navigation":
                self._pages = {page.url_pathname: page.page_script_hash for page in told.navigation.app_pages}
            elif kind == "delta" and told.delta.WhichOneof("type") == "new_element":
                run.elements += 1
                if told.delta.new_element.WhichOneof("type") == "button":
                    run.buttons[told.delta.new_element.button.label] = told.delta.new_element.button.id
            elif kind == "script_finished":
                run.seconds = time.perf_counter() - begun
                return run
