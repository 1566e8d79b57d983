-- ARGV: n. Answers how many were promoted, how many unblocked, the time until the next is due, or -1, and for each queue its
-- name and how many of the promoted went there.
local SWEPT, RATES, LINES = 50, 100, 100
local n = tonumber(ARGV[1])
local ids = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, n)
load(ids)
local queues = {}
for _, id in ipairs(ids) do
  local job = jobs[id]
  if job then
    local status = job[STATUS]
    leave(id, job, 'q')
    job[QUEUED_AT], job[UPDATED_AT] = NOW, NOW
    enter(id, job, 'q', status)
    tell(id, job, 'p', '', '')
    queues[job[QUEUE]] = (queues[job[QUEUE]] or 0) + 1
  else
    drop(DUE, id)
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
local next_ = redis.call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2]
local room_at = redis.call('ZRANGE', P .. 'rooms', 0, 0, 'WITHSCORES')[2]
next_ = math.min(tonumber(next_ or math.huge), tonumber(room_at or math.huge))
local answer = {#ids, unblocked, next_ < math.huge and math.max(0, next_ - now) or -1}
for queue, count_ in pairs(queues) do
  answer[#answer + 1], answer[#answer + 2] = queue, count_
end
return answer
