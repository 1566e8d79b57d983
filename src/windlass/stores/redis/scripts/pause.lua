-- ARGV: whether to pause or to resume, then the queues.
local queued = 0

-- The lines of a queue that is paused are not found by their types.
local function show_lines(queue, shown)
  for _, member in ipairs(redis.call('ZRANGE', P .. 'by:' .. queue, 0, -1)) do
    local type_, priority = string.match(member, '^(.*)' .. SEP .. '(.*)$')
    if shown then
      redis.call('ZADD', P .. 'of:' .. type_, priority, queue .. SEP .. priority)
      queued = queued + redis.call('ZCARD', P .. 'w:' .. queue .. SEP .. member)
    else
      redis.call('ZREM', P .. 'of:' .. type_, queue .. SEP .. priority)
    end
  end
end

for at = 2, #ARGV do
  if ARGV[1] == '1' then
    redis.call('HSETNX', P .. 'queues', ARGV[at], now)
    redis.call('HSETNX', P .. 'paused', ARGV[at], now)
    show_lines(ARGV[at], false)
  else
    redis.call('HDEL', P .. 'paused', ARGV[at])
    show_lines(ARGV[at], true)
    told_queued(ARGV[at], math.max(1, queued))
  end
end
wake(ARGV[1] == '1')
return 1
