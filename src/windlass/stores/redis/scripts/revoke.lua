-- ARGV: ids of keys. Answers those that there are, and are revoked now.
local revoked = {}
for _, id in ipairs(ARGV) do
  local record = redis.call('HGET', P .. 'access', id)
  if record then
    local key = split(record)
    if key[9] == '' then
      key[9] = NOW
      redis.call('HSET', P .. 'access', id, packed(key))
      if key[2] == 'session' then
        redis.call('ZADD', P .. 'sessions', NOW, id)
      end
    end
    revoked[#revoked + 1] = id
  end
end
return revoked
