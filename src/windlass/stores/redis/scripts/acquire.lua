-- ARGV: lock, owner, ms, mark. Answers the token, or 0 when another has it, and until when. The same mark again is the same
-- call, whose answer was lost. Tokens come from one counter for all names, so that a lock can be forgotten and its tokens
-- still never fall.
local key = P .. 'lock:' .. ARGV[1]
local found = redis.call('GET', key)
if found then
  local held = split(found)
  if tonumber(held[2]) > now then
    return {held[3] == ARGV[4] and tonumber(held[1]) or 0, tonumber(held[2])}
  end
end
local until_ = now + tonumber(ARGV[3])
local token = math.max(tonumber(redis.call('HGET', P .. 'meta', 'lock_token') or 0) + 1, first_token())
redis.call('HSET', P .. 'meta', 'lock_token', digits[token])
redis.call('SET', key, digits[token] .. '\0' .. until_ .. '\0' .. ARGV[4] .. '\0' .. ARGV[2], 'PX', math.max(1, tonumber(ARGV[3])))
return {token, until_}
