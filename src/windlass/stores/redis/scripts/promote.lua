-- ARGV: n. Answers how many of what is due were moved, how many went on, the time until something is due, or -1, whether
-- there is something for expire.lua to do, and for each queue its name and how many were promoted there.
local SWEPT, RATES, LINES = 50, 100, 100
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

-- Lines written by versions that do not know the index are found in the same way.
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
local wait, expiry = time_to_next()
local answer = {#ids, freed + unblocked, wait, expiry <= now and 1 or 0}
for queue, count_ in pairs(queues) do
  answer[#answer + 1], answer[#answer + 2] = queue, count_
end
return answer
