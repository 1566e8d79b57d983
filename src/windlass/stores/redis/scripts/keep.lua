-- ARGV: lock, token, ms, or nothing to give it back. Answers whether the token was the current one.
local key = P .. 'lock:' .. ARGV[1]
local found = redis.call('GET', key)
local held = found and split(found)
if not held or held[1] ~= ARGV[2] then
  return 0
end
go_on_when_full()
if ARGV[3] == '' then
  keep_lock(key, held[1], 0, '')
  wake(true)
  return 1
end
if tonumber(held[2]) <= now then
  return 0
end
keep_lock(key, held[1], now + tonumber(ARGV[3]), held[4])
return 1
