-- ARGV: lock, owner, ms. Answers the token, or 0 when another has it, and until when. The owner who has it, and asks again
-- because an answer was lost, is granted the same token anew. Tokens come from one counter for all names, so that a lock can
-- be forgotten and its tokens still never fall.
local key, until_ = P .. 'lock:' .. ARGV[1], now + tonumber(ARGV[3])
local found = redis.call('GET', key)
local held = found and split(found)
local theirs = held and tonumber(held[2]) > now
if theirs and held[4] ~= ARGV[2] then
  return {0, tonumber(held[2])}
end
local token = theirs and tonumber(held[1])
if not token then
  token = math.max(tonumber(redis.call('HGET', P .. 'meta', 'lock_token') or 0) + 1, first_token())
  redis.call('HSET', P .. 'meta', 'lock_token', digits[token])
end
keep_lock(key, digits[token], until_, ARGV[2])
return {token, until_}
