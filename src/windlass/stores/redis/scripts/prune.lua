-- ARGV: n, how many ms cancelled, failed and succeeded jobs are kept and how many of each at most (-1: any number), then
-- each queue with its own four. Answers how many were deleted.
local DAY = 86400000
local ORDER = {'c', 'f', 'd'}
local room = tonumber(ARGV[1])
local own = {}
for at = 6, #ARGV, 5 do
  own[ARGV[at]] = at
end
local removed = 0
local queues = redis.call('HKEYS', P .. 'queues')

local function list_of(status, queue)
  return P .. 'ended:' .. status .. SEP .. queue
end

local function prune(key, ids)
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

-- The oldest of these lists taken together, beyond the number that is kept.
local function prune_beyond(keys, most)
  local beyond = -most
  for _, key in ipairs(keys) do
    beyond = beyond + redis.call('ZCARD', key)
  end
  local n, found = math.min(beyond, room - removed), {}
  if most < 0 or n < 1 then
    return
  end
  for _, key in ipairs(keys) do
    local oldest = redis.call('ZRANGE', key, 0, n - 1, 'WITHSCORES')
    for at = 1, #oldest, 2 do
      found[#found + 1] = {key = key, id = oldest[at], at = tonumber(oldest[at + 1])}
    end
  end
  table.sort(found, function(one, other)
    return one.at < other.at or (one.at == other.at and one.id < other.id)
  end)
  for at = 1, n do
    prune(found[at].key, {found[at].id})
  end
end

for place, status in ipairs(ORDER) do
  local together = {}
  for _, queue in ipairs(queues) do
    local kept, key = tonumber(ARGV[(own[queue] or 1) + place]), list_of(status, queue)
    if room > removed then
      prune(key, redis.call('ZRANGEBYSCORE', key, '-inf', now - kept, 'LIMIT', 0, room - removed))
    end
    if not own[queue] then
      together[#together + 1] = key
    end
  end
  flush()
  prune_beyond(together, tonumber(ARGV[5]))
  for queue, at in pairs(own) do
    prune_beyond({list_of(status, queue)}, tonumber(ARGV[at + 4]))
  end
  flush()
end
redis.call('ZREMRANGEBYSCORE', P .. 'minutes', '-inf', now - 30 * DAY)
local workers = redis.call('HGETALL', P .. 'workers')
for at = 1, #workers, 2 do
  if tonumber(split(workers[at + 1])[2]) < now - DAY then
    redis.call('HDEL', P .. 'workers', workers[at])
  end
end
return removed
