-- ARGV: the name of a series, an instant and a text. The names are in `series`, for pruning.
local key = P .. 'series:' .. ARGV[1]
redis.call('ZREMRANGEBYSCORE', key, ARGV[2], ARGV[2])
redis.call('ZADD', key, ARGV[2], ARGV[2] .. ' ' .. ARGV[3])
redis.call('SADD', P .. 'series', ARGV[1])
return 1
