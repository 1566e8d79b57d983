-- ARGV: how many ms back. Answers now, the counts, and each minute with its figures. Only reads.
local from = now - tonumber(ARGV[1])
from = from - from % 60000
local told = {now, redis.call('HGETALL', P .. 'counts')}
for _, minute in ipairs(redis.call('ZRANGEBYSCORE', P .. 'minutes', from, '+inf')) do
  told[#told + 1] = minute
  told[#told + 1] = redis.call('HGETALL', P .. 'minute:' .. minute)
end
return told
