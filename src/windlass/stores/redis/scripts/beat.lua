-- ARGV: worker, how it describes itself.
local found = redis.call('HGET', P .. 'workers', ARGV[1])
local started = found and split(found)[1] or now
redis.call('HSET', P .. 'workers', ARGV[1], started .. '\0' .. now .. '\0' .. ARGV[2])
return 1
