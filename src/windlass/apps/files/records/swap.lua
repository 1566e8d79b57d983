-- Compare a file's revision and put a new state in its place; what its project takes is counted in the same step.
-- KEYS: file, names, usage, disk. ARGV: revision (0: not there yet), file, state, bytes, waiting, place on disk or "", whether it counts.
-- 1: done, 0: another revision is there, -1: another file has that place on disk.
local held = redis.call('HMGET', KEYS[1], 'revision', 'bytes', 'waiting', 'disk', 'there')
local revision = tonumber(held[1] or 0)
if revision ~= tonumber(ARGV[1]) then
  return 0
end
local disk = held[4] or ''
if ARGV[6] ~= disk then
  if ARGV[6] ~= '' then
    if redis.call('HSETNX', KEYS[4], ARGV[6], ARGV[2]) == 0 then
      return -1
    end
  end
  if disk ~= '' then
    redis.call('HDEL', KEYS[4], disk)
  end
end
redis.call('HSET', KEYS[1], 'revision', revision + 1, 'state', ARGV[3], 'bytes', ARGV[4], 'waiting', ARGV[5], 'disk', ARGV[6],
  'there', ARGV[7])
if revision == 0 then
  redis.call('ZADD', KEYS[2], 0, ARGV[2])
end
redis.call('HINCRBY', KEYS[3], 'files', tonumber(ARGV[7]) - tonumber(held[5] or 0))
redis.call('HINCRBY', KEYS[3], 'bytes', tonumber(ARGV[4]) - tonumber(held[2] or 0))
redis.call('HINCRBY', KEYS[3], 'waiting', tonumber(ARGV[5]) - tonumber(held[3] or 0))
return 1
