-- ARGV: n, how many ms cancelled, failed and succeeded jobs are kept, then each queue with its own three. Answers how
-- many were deleted.
local DAY = 86400000
local ORDER = {'c', 'f', 'd'}
local room = tonumber(ARGV[1])
local own = {}
for at = 5, #ARGV, 4 do
  own[ARGV[at]] = at
end
local removed = 0
local queues = redis.call('HKEYS', P .. 'queues')
for place, status in ipairs(ORDER) do
  for _, queue in ipairs(queues) do
    local kept = tonumber(ARGV[(own[queue] or 1) + place])
    local key = P .. 'ended:' .. status .. SEP .. queue
    local ids = room > removed and redis.call('ZRANGEBYSCORE', key, '-inf', now - kept, 'LIMIT', 0, room - removed) or {}
    load(ids)
    for _, id in ipairs(ids) do
      if jobs[id] then
        erase(id, jobs[id])
      else
        drop(key, id)
      end
    end
    removed = removed + #ids
  end
end
flush()
redis.call('ZREMRANGEBYSCORE', P .. 'minutes', '-inf', now - 30 * DAY)
local workers = redis.call('HGETALL', P .. 'workers')
for at = 1, #workers, 2 do
  if tonumber(split(workers[at + 1])[2]) < now - DAY then
    redis.call('HDEL', P .. 'workers', workers[at])
  end
end
return removed
