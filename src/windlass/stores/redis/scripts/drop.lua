-- ARGV: schedules to forget. Answers how many there were.
local dropped_before = answered()
if dropped_before then
  return dropped_before
end

local n = 0
for _, name in ipairs(ARGV) do
  n = n + redis.call('HDEL', P .. 'schedules', name)
  redis.call('ZREM', P .. 'upcoming', name)
  redis.call('DEL', P .. 'ticks:' .. name)
end
news.due = n > 0
wake()
return n > 0 and remember(n) or 0
