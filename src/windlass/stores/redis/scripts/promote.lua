-- ARGV: how many that are due, how many that have expired, and what history tells of these. Answers how many of what is due
-- were moved, how many went on, the time until the next is due, or -1, the ids of those that had expired, and for each queue
-- its name and how many were promoted there.
local SWEPT, RATES, LINES = 50, 100, 100
local EXPIRING = P .. 'expiring'
local n = tonumber(ARGV[1])
local ids = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, n)
load(ids)
local queues, freed = {}, 0

for _, id in ipairs(ids) do
  local job = jobs[id]
  local status, by = job and job[STATUS], job and job[BLOCKED_BY]
  local timed_out = status == 'b' and is_by(BY.signal, by)
  if timed_out or status == 's' or status == 'r' then
    leave(id, job, 'q')
    job[QUEUED_AT], job[UPDATED_AT] = NOW, NOW
    if timed_out then
      job[BLOCKED_BY] = ''
    end
    enter(id, job, 'q', status)
  else
    -- A worker that does not know of signals may have moved a job that waited for one, and have left it in this list.
    drop(DUE, id)
  end
  if timed_out then
    go_on_when_full()
    keep_value(id, job, by, 'null') -- what it was blocked by is also the name that its signal is kept under
    tell(id, job, 'u', '', noted('the signal ' .. key_of(BY.signal, by) .. ' did not come in time'))
    freed = freed + 1
  elseif status == 's' or status == 'r' then
    tell(id, job, 'p', '', '')
    queues[job[QUEUE]] = (queues[job[QUEUE]] or 0) + 1
  end
end
flush()

local expired = {}
local over = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now, 'LIMIT', 0, tonumber(ARGV[2]))
if #over > 0 then
  local waited = {}
  load(over)
  for _, id in ipairs(over) do
    local job = jobs[id]
    if job and WAITS[job[STATUS]] and job[TOKEN] == '0' then
      cancel_waiting(id, job, ARGV[3])
      waited_for(id, job, waited, 'job ' .. id .. ', which it awaited, was cancelled')
      expired[#expired + 1] = id
    else
      drop(EXPIRING, id) -- one that has moved on was moved by a worker that does not know of this list
    end
  end
  flush()
  for _, id in ipairs(expired) do
    if jobs[id][KEY] ~= '' then
      let_go(id, jobs[id])
      touch(id, jobs[id])
    end
  end
  flush()
  freed = freed + unblock_behind(waited)
end

-- `rooms` has the lines of rates by the instant at which there may be room for the first.
local unblocked = 0
local function call_from(by)
  unblocked = unblocked + unblock(by)
  flush()
  local first = redis.call('ZRANGE', P .. 'b:' .. by, 0, 0)[1]
  local job = first and job_of(first)
  if not job then
    redis.call('ZREM', P .. 'rooms', by)
    return
  end
  local _, per = control_of(job)
  local _, free_at = spent_of(key_of(BY.rate, by), per)
  -- With nothing spent, those that were called have all the room, and spend it when they are claimed.
  redis.call('ZADD', P .. 'rooms', free_at and math.max(free_at, now + 1) or now + 1000, by)
end

for _, by in ipairs(redis.call('ZRANGEBYSCORE', P .. 'rooms', '-inf', now, 'LIMIT', 0, RATES)) do
  if unblocked < n then
    call_from(by)
  end
end

-- Heals what no ending freed: a way that became free otherwise. Each call looks at a few lines and goes on where the last one
-- stopped, so that lines that are held cost little and do not hide a free one behind them.
local function go_round(cursor, read, each)
  local from = redis.call('HGET', P .. 'meta', cursor) or ''
  local found = read(from)
  for _, member in ipairs(found) do
    each(member)
  end
  local last = found[#found] or ''
  if last ~= from then
    redis.call('HSET', P .. 'meta', cursor, last)
  end
end

if redis.call('EXISTS', P .. 'blocked') == 1 then
  go_round('swept', function(from)
    local found = redis.call('ZRANGEBYLEX', P .. 'blocked', from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, SWEPT)
    if #found < SWEPT and from ~= '' then
      for _, by in ipairs(redis.call('ZRANGEBYLEX', P .. 'blocked', '-', '[' .. from, 'LIMIT', 0, SWEPT - #found)) do
        found[#found + 1] = by
      end
    end
    return found
  end, function(by)
    if is_by(BY.rate, by) then
      redis.call('ZADD', P .. 'rooms', 'NX', now, by)
    elseif unblocked < n then
      unblocked = unblocked + unblock(by)
    end
  end)
  flush()
end

-- Lines that were written by who does not know of the index are found in the same way.
local size = redis.call('ZCARD', P .. 'lines')
if size > LINES then
  local from = tonumber(redis.call('HGET', P .. 'meta', 'indexing') or 0)
  for _, line in ipairs(redis.call('ZRANGE', P .. 'lines', from, from + LINES - 1)) do
    index_line(line)
  end
  local over = from + LINES >= size
  redis.call('HSET', P .. 'meta', 'indexing', over and 0 or from + LINES)
  if over then
    redis.call('HSET', P .. 'meta', 'indexed', 1)
  end
end
wake()
local next_ = math.huge
for _, list in ipairs({DUE, P .. 'rooms', EXPIRING}) do
  next_ = math.min(next_, tonumber(redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')[2] or math.huge))
end
local went_to = {}
for queue, count_ in pairs(queues) do
  went_to[#went_to + 1], went_to[#went_to + 2] = queue, count_
end
return {#ids, freed + unblocked, next_ < math.huge and math.max(0, next_ - now) or -1, expired, went_to}
