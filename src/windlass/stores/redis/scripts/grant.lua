-- ARGV: how many sessions that are over are removed at once; id, hash of the secret, kind, owner, name, scopes, ms that the key
-- lasts, or nothing, and its grants. Answers its record: hash, kind, owner, name, scopes, then when it was created, expires,
-- was used and was revoked, and its grants. `access` has them by id, `secrets` the ids by hash, and `sessions` the end of every session.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sessions', '-inf', NOW, 'LIMIT', 0, ARGV[1])) do
  local found = redis.call('HGET', P .. 'access', id)
  if found then
    redis.call('HDEL', P .. 'secrets', split(found)[1])
  end
  redis.call('HDEL', P .. 'access', id)
  redis.call('ZREM', P .. 'sessions', id)
end
local id, lasts = ARGV[2], ARGV[8]
local known = redis.call('HGET', P .. 'access', id)
if known then
  return known
end
local ends = lasts ~= '' and digits[now + tonumber(lasts)] or ''
local record = packed({ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], NOW, ends, '', '', ARGV[9]})
redis.call('HSET', P .. 'access', id, record)
redis.call('HSET', P .. 'secrets', ARGV[3], id)
if ARGV[4] == 'session' and ends ~= '' then
  redis.call('ZADD', P .. 'sessions', ends, id)
end
return record
