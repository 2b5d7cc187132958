"""A stream's messages over a WebSocket (RFC 6455), a text frame each; wsproto knows the frames.

What the client sends is read for pings and its end alone. Imported for the first of them: wsproto takes 20 ms to
import. Must not know what the messages are.
"""

import base64
from typing import Any

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import CloseConnection, Message, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from process.streams import Ended, Framing

VERSION = "13"
MAX_DATA_BYTES = 4_096  # of a message from the client: the app sends none
NORMAL, UNSUPPORTED, TOO_BIG = 1000, 1003, 1009


def is_key(value: str) -> bool:
    """Whether this is what a client sends as `Sec-WebSocket-Key`: 16 bytes in base64."""
    try:
        return len(base64.b64decode(value, validate=True)) == 16
    except ValueError:
        return False


def accept(key: str) -> str:
    """What proves that the handshake was understood."""
    return generate_accept_token(key.encode()).decode()


class WebSocket(Framing):
    """Messages in text frames."""

    def __init__(self) -> None:
        self.frames = Connection(ConnectionType.SERVER)
        self.data_bytes = 0  # of the client's message so far
        self.code = NORMAL  # with which it will be closed

    def frame(self, message: str) -> bytes:
        """The message in a frame; nothing once the client has closed."""
        return bytes(self.frames.send(TextMessage(message))) if self.frames.state is ConnectionState.OPEN else b""

    def end(self) -> bytes:
        """The frame that closes."""
        return bytes(self.frames.send(CloseConnection(self.code)))

    def received(self, data: bytes) -> bytes:
        """The answers to the client's pings; raises `Ended` when it closes or breaks the rules."""
        answers = b""
        self.frames.receive_data(data)
        for event in self.frames.events():
            if isinstance(event, CloseConnection):  # also what wsproto makes of a broken rule
                raise self._ended(event.code)
            if isinstance(event, Ping):
                answers += self.frames.send(event.response())
            elif isinstance(event, Message):
                self._pass_over(event)
        return answers

    def _pass_over(self, message: Any) -> None:
        """Ignore what the client says, as long as it is short and in one frame; else raises `Ended`."""
        self.data_bytes += len(message.data)
        if self.data_bytes > MAX_DATA_BYTES:
            raise self._ended(TOO_BIG)
        if message.frame_finished and not message.message_finished:
            raise self._ended(UNSUPPORTED)
        if message.message_finished:
            self.data_bytes = 0

    def _ended(self, code: int) -> Ended:
        self.code = code
        return Ended()
