-- ARGV: worker, how it describes itself, its queues and what it handles, whether it is stopping, ms after which one that is
-- silent is presumed dead. Answers id and the same of all that have beaten since and are not stopping; `peers` has them by their last beat.
local worker = ARGV[1]
local found = redis.call('HGET', P .. 'workers', worker)
local started = found and split(found)[1] or NOW
redis.call('HSET', P .. 'workers', worker, started .. '\0' .. NOW .. '\0' .. ARGV[2])
if ARGV[4] == '1' then
  redis.call('ZREM', P .. 'peers', worker)
  redis.call('HDEL', P .. 'consume', worker)
else
  redis.call('ZADD', P .. 'peers', now, worker)
  redis.call('HSET', P .. 'consume', worker, ARGV[3])
end
local peers = redis.call('ZRANGEBYSCORE', P .. 'peers', '(' .. digits[now - tonumber(ARGV[5])], '+inf')
local consumed = {}
for first = 1, #peers, MOST do
  for _, queues in ipairs(redis.call('HMGET', P .. 'consume', unpack(peers, first, math.min(first + MOST - 1, #peers)))) do
    consumed[#consumed + 1] = queues or ''
  end
end
return {peers, consumed}
