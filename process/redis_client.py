"""Redis, which counts for all processes of a service: scripts, answered within a quarter of a second or not at all.

One thread talks to Redis, through redis-py's client, and sends what several requests ask at the same time in one
pipeline. So a slow name server, handshake or answer holds no request longer than the time limit. After any failure a
circuit breaker opens: nobody asks Redis until that thread, which tries each second, has written to it again.
redis-py is imported when a client is made. Must not know what the scripts do. No error of Redis is shown whole: it
may quote what was sent.
"""

import contextlib
import logging
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import certifi

TIMEOUT_S = 0.25  # of a request; also of each step of a handshake
TRIED_EVERY_S = 1.0
PROBE_LIFE_MS = 60_000

log = logging.getLogger("pocketbell")


class Question(NamedTuple):
    """A script that a request wants to run, and where it waits for the result."""

    script: str
    keys: Sequence[str]
    values: Sequence[str | int]
    answer: SimpleQueue[Any]


class RedisClient:
    """The connection to one Redis. `name` keeps the keys of one database apart from others' on the same Redis."""

    def __init__(self, url: str, name: str, verifies: bool = True, ca_file: str | None = None) -> None:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        # Unless told otherwise, redis-py 8.1 tries three times, and waits 5 s each time.
        options: dict[str, Any] = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
        options |= {"retry": Retry(NoBackoff(), 0), "protocol": 2, "driver_info": None}
        if url.startswith("rediss:"):
            options |= {"ssl_cert_reqs": "required" if verifies else "none"}
            options |= {"ssl_ca_certs": ca_file or certifi.where()} if verifies else {}
        self._redis = Redis.from_url(url, **options)  # whose options would win, but the settings allow none in `url`
        self._prefix = f"{{pocketbell:{name}}}:"  # the braces keep all keys on one node of a cluster
        self._questions: SimpleQueue[Question] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self.is_away = False  # whether the circuit breaker is open
        threading.Thread(target=self._serve, daemon=True).start()

    def key(self, *parts: str | int) -> str:
        """The key of something shared."""
        return self._prefix + ":".join(map(str, parts))

    def run(self, script: str, keys: Sequence[str], values: Sequence[str | int]) -> Any:
        """What the script returns, as bytes or lists of bytes; None if Redis does not answer in time, or is away."""
        if self.is_away:
            return None
        answer: SimpleQueue[Any] = SimpleQueue()
        self._questions.put(Question(script, keys, values, answer))
        try:
            return answer.get(timeout=TIMEOUT_S)
        except Empty:
            self._open_breaker(TimeoutError())
            return None

    def fault(self) -> str | None:
        """What keeps this process from using Redis now, in few words; None if nothing does. May take a second."""
        try:
            self._probe()
        except Exception as error:
            return _reason(error)
        return None

    def close(self) -> None:
        """End the thread and its connection, within a second; the client answers None from now on."""
        self._is_closed.set()
        self.is_away = True

    def _open_breaker(self, error: Exception) -> None:
        with self._lock:
            is_news, self.is_away = not self.is_away, True
        if is_news:
            for question in self._taken(0):  # those that came meanwhile need not wait as long as the first
                question.answer.put(None)
            log.warning(f"Redis cannot be used: {_reason(error)}. This process counts by itself until it can.")

    # --- the thread that talks to Redis ---------------------------------------------------------------------

    def _serve(self) -> None:
        while not self._is_closed.is_set():
            try:
                if self.is_away:
                    self._try_again()
                elif questions := self._taken(TRIED_EVERY_S):
                    self._answer(questions)
            except Exception as error:
                self._open_breaker(error)
        self._redis.close()

    def _try_again(self) -> None:
        """Close the breaker if Redis takes what is written."""
        if self._is_closed.wait(TRIED_EVERY_S):
            return
        self._probe()
        self._taken(0)  # nobody waits for these any more
        self.is_away = self._is_closed.is_set()
        log.warning("Redis can be used again.")

    def _taken(self, pause_s: float) -> list[Question]:
        """All questions, once there is one; none if none comes in so many seconds."""
        taken = []
        with contextlib.suppress(Empty):
            taken.append(self._questions.get(timeout=pause_s))
            while True:
                taken.append(self._questions.get_nowait())
        return taken

    def _answer(self, questions: list[Question]) -> None:
        """Answer the questions in one trip to Redis. Once one fails, the breaker opens and the others get None."""
        pipeline = self._redis.pipeline(transaction=False)
        for script, keys, values, _ in questions:
            pipeline.eval(script, len(keys), *keys, *values)
        try:
            for question, answer in zip(questions, pipeline.execute(raise_on_error=False), strict=True):
                if isinstance(answer, Exception):  # redis-py's own error would quote what was sent
                    raise answer
                question.answer.put(answer)
        except Exception as error:
            self._open_breaker(error)
        finally:
            for question in questions:
                question.answer.put(None)  # read by those alone that have no answer

    def _probe(self) -> None:
        """Write something: a replica or a full Redis refuses."""
        self._redis.set(self.key("probe"), 1, px=PROBE_LIFE_MS)


def _reason(error: BaseException) -> str:
    """The reason in few words, without what was sent: Redis may quote it, and the client the address."""
    kind = type(error).__name__
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT_S} s"
    cause = error.__context__ if isinstance(error.__context__, OSError) else error
    if isinstance(cause, OSError):
        return str(getattr(cause, "verify_message", None) or cause.strerror or kind)
    code = str(error).partition(" ")[0]
    return f"{kind} {code}" if code.isalpha() and code.isupper() else kind
