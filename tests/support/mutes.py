"""Mutes, as programs make them."""


def mute(caller, what="all", id_=None, for_s=3600, **more):
    """Mute something, and return the mute as it is answered."""
    timed = {} if "until" in more else {"forS": for_s}
    answer = caller.post("/mutes", {"what": what, "id": id_, **timed, **more})
    assert answer.status_code == 201, answer.json
    return answer.json["mute"]


def unmute(caller, muted):
    assert caller.delete(f"/mutes/{muted['id']}").json == {"ok": True}


def key_id(caller, name="test"):
    return next(one["id"] for one in caller.get("/api-keys").json["apiKeys"] if one["name"] == name)
