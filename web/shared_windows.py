"""The same moving windows in Redis, which counts for all processes. Must not know the limits.

One script counts all that a request counts against, by Redis' clock. The keys are hashes, because their names hold
addresses of senders and marks of passwords.
"""

from hashlib import blake2b

from process.redis_client import RedisClient
from web.moving_windows import Claims, Counted

# KEYS: for each claim a list of the times of its hits in microseconds, oldest first. ARGV: for each claim the number
# of its group, its limit, length in seconds, amount. Returns for each group 1 if a claim was refused or else 0, the
# place of that claim or else of the one with the least room left, the hits within its window, and the age of the hit
# that must end before another one fits.
COUNT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function hits_within(key, length)
  local newest = redis.call('LINDEX', key, -1)
  if not newest then return 0 end
  if newest - now > 1000000 then  -- the clock was set back: as after a restart
    redis.call('DEL', key)
    return 0
  end
  local oldest = redis.call('LINDEX', key, 0)
  while oldest and oldest - now <= -length do
    redis.call('LPOP', key)
    oldest = redis.call('LINDEX', key, 0)
  end
  return redis.call('LLEN', key)
end

local function count(claim)
  for _ = 1, claim.amount do redis.call('RPUSH', claim.key, now) end
  if claim.amount > 0 then redis.call('EXPIRE', claim.key, claim.length) end
  if claim.amount < 0 then redis.call('RPOP', claim.key) end
end

local claims, answers, first = {}, {}, 1
for each = 1, #KEYS do
  local group, limit, length, amount = string.match(ARGV[each], '^(%d+) (%d+) (%d+) (-?%d+)$')
  claims[each] = {key = KEYS[each], group = group, limit = limit + 0, length = length + 0, amount = amount + 0}
end
while claims[first] do
  local last, shown, least, refused = first, first, math.huge, 0
  while claims[last] and claims[last].group == claims[first].group do
    local claim = claims[last]
    local room = claim.limit - hits_within(claim.key, claim.length * 1000000) - claim.amount
    if refused == 0 and room < least then least, shown = room, last end
    if refused == 0 and claim.amount >= 0 and room < (claim.amount == 0 and 1 or 0) then refused, shown = 1, last end
    last = last + 1
  end
  for each = first, last - 1 do
    if refused == 0 then count(claims[each]) end
  end
  local key = claims[shown].key
  local used = redis.call('LLEN', key)
  local until_fits = redis.call('LINDEX', key, math.max(0, used - claims[shown].limit))
  local age = until_fits and math.max(0, now - until_fits) or 0
  answers[#answers + 1] = string.format('%d %d %d %.0f', refused, shown - first, used, age)
  first = last
end
return table.concat(answers, ' ')
"""


class SharedWindows:
    """The windows of all processes. `secret` makes hashes of keys that nobody else can guess."""

    def __init__(self, client: RedisClient, secret: str) -> None:
        self._client, self._hash = client, blake2b(digest_size=16, key=secret.encode()[:64])
        self._prefix = client.key("hits", "")

    def count(self, groups: tuple[Claims, ...]) -> list[Counted] | None:
        """Count each group, one after the other, while nobody else counts; None if Redis cannot."""
        keys, values = [], []
        for number, claims in enumerate(groups):
            for key, limit, length_s, amount in claims:
                hashed = self._hash.copy()
                hashed.update(key.encode())
                keys.append(self._prefix + hashed.hexdigest())
                values.append(f"{number} {limit} {length_s} {amount}")
        answer = self._client.run(COUNT, keys, values)
        if answer is None:
            return None
        said = iter(map(int, answer.split()))
        counted = []
        for claims, refused, place, used, age_us in zip(groups, said, said, said, said, strict=True):
            _, limit, length_s, _ = claims[place]
            counted.append(Counted(place if refused else None, used, max(0, limit - used), length_s - age_us / 1e6))
        return counted
