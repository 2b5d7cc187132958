"""Accounts that follow what an owner's sends, as programs make them."""

PATHS = {"alert": "alerts", "heartbeat": "heartbeats", "rule": "rules", "key": "api-keys"}


def place(what, id_):
    return f"/{PATHS[what]}/{id_}/followers"


def invited(owner, what, id_, email):
    """Invite an address, and return the follower as it is answered."""
    answer = owner.post(place(what, id_), {"email": email})
    assert answer.status_code == 202, answer.json
    return answer.json["follower"]


def follower(service, owner, what, id_, name="bob", plan="pro"):
    """A caller of a new account that follows this."""
    email = f"{name}@example.org"
    caller = service.caller(service.account(email, plan))
    follow(owner, caller, email, what, id_)
    return caller


def follow(owner, caller, email, what, id_):
    """Let an account follow this."""
    one = invited(owner, what, id_, email)
    answer = caller.post(f"/following/{one['id']}/accept")
    assert answer.json["followed"]["state"] == "following", answer.json
    return one["id"]
