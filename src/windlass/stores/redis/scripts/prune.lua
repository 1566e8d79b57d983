-- ARGV: n, how many ms cancelled, failed and succeeded jobs are kept and how many of each at most (-1: any number), then
-- each queue with its own four. Answers how many were deleted, and whether another call may find more.
--
-- `ending` has the queues by the instant of their first end, for each status: only those that may have something to prune are
-- looked at. `kept` has how many ended jobs were last counted, of each status in all and of each queue.
local DAY = 86400000
local NAMES, FLOWS = 100, 100
local ORDER = {'c', 'f', 'd'}
local room, removed, looked = tonumber(ARGV[1]), 0, 0
local own, n_own = {}, 0
for at = 6, #ARGV, 5 do
  own[ARGV[at]], n_own = at, n_own + 1
end

local function list_of(status, queue)
  return P .. 'ended:' .. status .. SEP .. queue
end

-- The names of a hash from where the last call stopped, and on: all are seen in the course of some calls.
local function some_of(hash, cursor, each)
  local found = redis.call('HSCAN', P .. hash, redis.call('HGET', P .. 'meta', cursor) or 0, 'COUNT', NAMES)
  for at = 1, #found[2], 2 do
    each(found[2][at], found[2][at + 1])
  end
  redis.call('HSET', P .. 'meta', cursor, found[1])
  return found[1] ~= '0'
end

local function stand_by_first(status, queue)
  local first = redis.call('ZRANGE', list_of(status, queue), 0, 0, 'WITHSCORES')[2]
  if first then
    redis.call('ZADD', P .. 'ending:' .. status, first, queue)
  else
    redis.call('ZREM', P .. 'ending:' .. status, queue)
  end
end

local function recount(status, queue, n)
  local name = status .. SEP .. queue
  local by = n - tonumber(redis.call('HGET', P .. 'kept', name) or 0)
  count(P .. 'kept', name, by)
  count(P .. 'kept', status, by)
end

-- What a live job awaits is put aside until that one has ended.
local function awaits(id)
  local job = job_of(id)
  return job and not ENDED[job[STATUS]]
end

local function put_aside(id, job, next_)
  remove_all(names_of(job).ended, {id})
  add_all(P .. 'aside:' .. next_, job[FINISHED_AT], {id})
  add_all(P .. 'aside', '0', {next_})
end

local function prune(status, queue, ids)
  load(ids)
  local key = list_of(status, queue)
  for _, id in ipairs(ids) do
    local job = jobs[id]
    local next_ = job and next_of(job) or ''
    if next_ ~= '' and awaits(next_) then
      put_aside(id, job, next_)
    else
      if job then
        erase(id, job)
      else
        drop(key, id)
      end
      removed = removed + 1
    end
  end
  looked = looked + #ids
  flush()
  stand_by_first(status, queue)
  if redis.call('HEXISTS', P .. 'kept', status .. SEP .. queue) == 1 then
    recount(status, queue, redis.call('ZCARD', key))
  end
end

-- Flows that something was put aside for, those first that were not looked at for the longest time. Answers whether more of
-- them may have ended.
local function bring_back()
  local left, flows = room, redis.call('ZRANGE', P .. 'aside', 0, FLOWS - 1)
  for _, next_ in ipairs(flows) do
    local key = P .. 'aside:' .. next_
    if awaits(next_) then
      redis.call('ZADD', P .. 'aside', now, next_)
    elseif left > 0 then
      local ids = redis.call('ZRANGE', key, 0, left - 1)
      left = left - #ids
      load(ids)
      for _, id in ipairs(ids) do
        local job = jobs[id]
        if job and ENDED[job[STATUS]] then
          add_all(names_of(job).ended, job[FINISHED_AT], {id})
          redis.call('ZADD', names_of(job).ending, 'LT', job[FINISHED_AT], job[QUEUE])
        end
        remove_all(key, {id})
      end
      flush()
      if redis.call('EXISTS', key) == 0 then
        redis.call('ZREM', P .. 'aside', next_)
      end
    end
  end
  return left < 1 or (left < room and #flows == FLOWS)
end

local function prune_older(status, queue, kept)
  if looked < room then
    local before = digits[now - kept]
    prune(status, queue, redis.call('ZRANGEBYSCORE', list_of(status, queue), '-inf', before, 'LIMIT', 0, room - looked))
  end
end

local function prune_oldest(status, queue, n, up_to)
  local oldest = redis.call('ZRANGE', list_of(status, queue), 0, n - 1, 'WITHSCORES')
  local ids = {}
  for at = 1, #oldest, 2 do
    if at > 1 and tonumber(oldest[at + 1]) > up_to then
      break
    end
    ids[#ids + 1] = oldest[at]
  end
  prune(status, queue, ids)
  return #ids
end

-- The oldest of all queues without their own retention, beyond the number that is kept: from the queue whose first is the
-- oldest, up to the first of the next one.
local function prune_beyond(status, most)
  local beyond = tonumber(redis.call('HGET', P .. 'kept', status) or 0) - most
  for queue in pairs(own) do
    beyond = beyond - tonumber(redis.call('HGET', P .. 'kept', status .. SEP .. queue) or 0)
  end
  local steps = room
  while beyond > 0 and looked < room and steps > 0 do
    local firsts, found = {}, redis.call('ZRANGE', P .. 'ending:' .. status, 0, n_own + 1, 'WITHSCORES')
    for at = 1, #found, 2 do
      if not own[found[at]] then
        firsts[#firsts + 1] = {queue = found[at], at = tonumber(found[at + 1])}
      end
    end
    if not firsts[1] then
      return
    end
    local queue, up_to = firsts[1].queue, firsts[2] and firsts[2].at or math.huge
    local first = redis.call('ZRANGE', list_of(status, queue), 0, 0, 'WITHSCORES')[2]
    if first and tonumber(first) == firsts[1].at then
      beyond = beyond - prune_oldest(status, queue, math.min(beyond, room - looked), up_to)
    else
      stand_by_first(status, queue)
    end
    steps = steps - 1
  end
end

go_on_when_full()
local uncounted = some_of('queues', 'pruned', function(queue)
  for _, status in ipairs(ORDER) do
    stand_by_first(status, queue)
    if tonumber(ARGV[5]) >= 0 then
      recount(status, queue, redis.call('ZCARD', list_of(status, queue)))
    end
  end
end)
local more = bring_back()
for place, status in ipairs(ORDER) do
  local kept = tonumber(ARGV[1 + place])
  local older = redis.call('ZRANGEBYSCORE', P .. 'ending:' .. status, '-inf', digits[now - kept], 'LIMIT', 0, room + n_own)
  for _, queue in ipairs(older) do
    if not own[queue] then
      prune_older(status, queue, kept)
    end
  end
  if tonumber(ARGV[5]) >= 0 then
    prune_beyond(status, tonumber(ARGV[5]))
  end
  for queue, at in pairs(own) do
    prune_older(status, queue, tonumber(ARGV[at + place]))
    local most = tonumber(ARGV[at + 4])
    local beyond = redis.call('ZCARD', list_of(status, queue)) - most
    if most >= 0 and beyond > 0 and looked < room then
      prune_oldest(status, queue, math.min(beyond, room - looked), math.huge)
    end
  end
end
redis.call('ZREMRANGEBYSCORE', P .. 'minutes', '-inf', now - 30 * DAY)
for _, name in ipairs(redis.call('SMEMBERS', P .. 'series')) do
  redis.call('ZREMRANGEBYSCORE', P .. 'series:' .. name, '-inf', now - 30 * DAY)
end
redis.call('ZREMRANGEBYSCORE', P .. 'peers', '-inf', now - DAY)
some_of('workers', 'forgot', function(worker, record)
  if tonumber(split(record)[2]) < now - DAY then
    redis.call('HDEL', P .. 'workers', worker)
    redis.call('HDEL', P .. 'consume', worker)
  end
end)
-- What was counted by versions that do not know `kinds` and `leased`.
some_of('counts', 'recounted', function(name)
  local status, queue, type_ = split_line(name)
  redis.call('SADD', P .. 'kinds:' .. queue, type_)
  if status == 'p' then
    redis.call('ZADD', P .. 'leased', 'NX', 0, queue .. SEP .. type_)
  end
end)
more = more or looked >= room or (uncounted and tonumber(ARGV[5]) >= 0)
return {removed, more and 1 or 0}
