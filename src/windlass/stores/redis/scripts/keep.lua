-- ARGV: lock, token, ms, or nothing to give it back. Answers whether the token was the current one.
local kept_before = answered()
if kept_before then
  return kept_before
end

local key = P .. 'lock:' .. ARGV[1]
local found = redis.call('GET', key)
local held = found and split(found)
if not held or held[1] ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('DEL', key)
  wake()
  return remember(1)
end
if tonumber(held[2]) <= now then
  return 0
end
held[2] = now + tonumber(ARGV[3])
redis.call('SET', key, packed(held), 'PX', math.max(1, tonumber(ARGV[3])))
return 1
