-- ARGV: the hash of a secret. Answers id and record of its key, or nothing if that was revoked or has expired. Only reads.
local id = redis.call('HGET', P .. 'secrets', ARGV[1])
local record = id and redis.call('HGET', P .. 'access', id)
if not record then
  return {}
end
local key = split(record)
local expires, revoked = key[7], key[9]
if revoked ~= '' or expires ~= '' and tonumber(expires) <= now then
  return {}
end
return {id, record}
