-- ARGV: workers that have stopped.
for _, worker in ipairs(ARGV) do
  redis.call('HDEL', P .. 'workers', worker)
  redis.call('HDEL', P .. 'consume', worker)
  redis.call('ZREM', P .. 'peers', worker)
end
return 1
