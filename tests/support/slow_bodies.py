"""A request whose body is still on the way while something else happens."""

import io


class SlowBody(io.BytesIO):
    """A body during which `meanwhile` is called."""

    def __init__(self, body, meanwhile):
        super().__init__(body)
        self.meanwhile = [meanwhile]

    def read(self, *size):
        while self.meanwhile:
            self.meanwhile.pop()()
        return super().read(*size)


def post_slowly(client, path, body, meanwhile, **more):
    """The answer to a request that `client` began before `meanwhile` happened, and that ended after it."""
    return client.post(path, input_stream=SlowBody(body, meanwhile), content_length=len(body), **more)
