-- Answers now, the queues, when they were paused, their largest depths, the counts, and the oldest instant that a
-- waiting job of a line was queued at, line by line. Only reads; the first few of the first lines are looked at.
local LOOKED, LINES_LOOKED = 20, 1000
local oldest = {}
for _, line in ipairs(redis.call('ZRANGE', P .. 'lines', 0, LINES_LOOKED - 1)) do
  local ids = redis.call('ZRANGE', P .. 'w:' .. line, 0, LOOKED - 1)
  load(ids)
  for _, id in ipairs(ids) do
    if jobs[id] then
      oldest[#oldest + 1] = jobs[id][QUEUE]
      oldest[#oldest + 1] = jobs[id][QUEUED_AT]
    end
  end
end
return {
  now, redis.call('HKEYS', P .. 'queues'), redis.call('HGETALL', P .. 'paused'), redis.call('HGETALL', P .. 'depths'),
  redis.call('HGETALL', P .. 'counts'), oldest,
}
