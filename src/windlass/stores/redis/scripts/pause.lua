-- ARGV: whether to pause or to resume, then the queues.
for at = 2, #ARGV do
  if ARGV[1] == '1' then
    redis.call('HSETNX', P .. 'queues', ARGV[at], now)
    redis.call('HSETNX', P .. 'paused', ARGV[at], now)
  else
    redis.call('HDEL', P .. 'paused', ARGV[at])
  end
end
wake()
return 1
