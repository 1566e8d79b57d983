-- ARGV: queue, its largest depth or nothing.
redis.call('HSETNX', P .. 'queues', ARGV[1], now)
if ARGV[2] == '' then
  redis.call('HDEL', P .. 'depths', ARGV[1])
else
  redis.call('HSET', P .. 'depths', ARGV[1], ARGV[2])
end
return 1
