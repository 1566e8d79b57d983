-- ARGV: schedules to forget. Answers how many there were.
local n = 0
for _, name in ipairs(ARGV) do
  n = n + redis.call('HDEL', P .. 'schedules', name)
  redis.call('DEL', P .. 'ticks:' .. name)
end
return n
