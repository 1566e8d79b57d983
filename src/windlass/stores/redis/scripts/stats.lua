-- ARGV: how many ms back; or nothing, and between which instants. Answers now, the counts, and each minute with its figures.
-- Only reads.
local from, until_ = ARGV[2], ARGV[3] or '+inf'
if not from then
  from = now - tonumber(ARGV[1])
  from = from - from % 60000
end
local told = {now, redis.call('HGETALL', P .. 'counts')}
for _, minute in ipairs(redis.call('ZRANGEBYSCORE', P .. 'minutes', from, until_)) do
  told[#told + 1] = minute
  told[#told + 1] = redis.call('HGETALL', P .. 'minute:' .. minute)
end
return told
