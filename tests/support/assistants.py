"""What an assistant sends to /mcp."""


def post(caller, message=None, headers=None, **more):
    return caller.request("POST", "/mcp", json=message, headers=headers, **more)


def ask(caller, method, params=None, headers=None, message_id=1):
    message = {"jsonrpc": "2.0", "id": message_id, "method": method}
    return post(caller, message if params is None else {**message, "params": params}, headers)


def call(caller, name, arguments=None):
    """The result of a tool."""
    answer = ask(caller, "tools/call", {"name": name, "arguments": arguments or {}})
    assert (answer.status_code, set(answer.json)) == (200, {"jsonrpc", "id", "result"})
    return answer.json["result"]


def described(caller):
    return {tool["name"]: tool for tool in ask(caller, "tools/list").json["result"]["tools"]}
