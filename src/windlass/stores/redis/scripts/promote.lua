-- ARGV: n. Answers how many were promoted, how many unblocked, and the time until the next is due, or -1.
local SWEPT = 1000
local n = tonumber(ARGV[1])
local ids = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, n)
load(ids)
for _, id in ipairs(ids) do
  local job = jobs[id]
  if job then
    local status = job[STATUS]
    leave(id, job, 'q')
    job[QUEUED_AT], job[UPDATED_AT] = NOW, NOW
    enter(id, job, 'q', status)
    tell(id, job, 'p', '', '')
  else
    drop(DUE, id)
  end
end
flush()

-- Heals what no ending freed: a way that became free otherwise. Each call goes on where the last one stopped, so that
-- lines that are held do not hide a free one behind them.
local unblocked = 0
if redis.call('EXISTS', P .. 'blocked') == 1 then
  local from = redis.call('HGET', P .. 'meta', 'swept') or ''
  local found = redis.call('ZRANGEBYLEX', P .. 'blocked', from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, SWEPT)
  local last = #found == SWEPT and found[SWEPT] or ''
  if last == '' and from ~= '' then
    for _, by in ipairs(redis.call('ZRANGEBYLEX', P .. 'blocked', '-', '[' .. from, 'LIMIT', 0, SWEPT)) do
      found[#found + 1] = by
    end
  end
  for _, by in ipairs(found) do
    if unblocked >= n then
      break
    end
    unblocked = unblocked + unblock(by)
  end
  flush()
  if last ~= from then
    redis.call('HSET', P .. 'meta', 'swept', last)
  end
end
if #ids > 0 or unblocked > 0 then
  wake()
end
local next_ = redis.call('ZRANGE', P .. 'due', 0, 0, 'WITHSCORES')[2]
next_ = next_ and tonumber(next_)
for _, by in ipairs(redis.call('ZRANGEBYLEX', P .. 'blocked', '[rate:', '(rate;', 'LIMIT', 0, SWEPT)) do
  local first = redis.call('ZRANGE', P .. 'b:' .. by, 0, 0)[1]
  local job = first and job_of(first)
  if job then
    local _, per = control_of(job)
    local _, free_at = spent_of(string.sub(by, 6), per)
    next_ = math.min(next_ or free_at or now, free_at or now)
  end
end
return {#ids, unblocked, next_ and math.max(0, next_ - now) or -1}
