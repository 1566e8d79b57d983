-- ARGV: ms within which a use is not noted again, and the ids of keys that were used.
for at = 2, #ARGV do
  local record = redis.call('HGET', P .. 'access', ARGV[at])
  local key = record and split(record)
  if key and (key[8] == '' or tonumber(key[8]) <= now - tonumber(ARGV[1])) then
    key[8] = NOW
    redis.call('HSET', P .. 'access', ARGV[at], packed(key))
  end
end
return 1
