-- ARGV: n, what history tells. Cancels jobs that no worker has taken in time. Answers how many went on that had waited for
-- them, the time until something is due, or -1, and the ids of those that were cancelled.
local EXPIRING = P .. 'expiring'
local over = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now, 'LIMIT', 0, tonumber(ARGV[1]))
load(over)
local expired, waited = {}, {}
for _, id in ipairs(over) do
  local job = jobs[id]
  if job and WAITS[job[STATUS]] and job[TOKEN] == '0' then
    cancel_waiting(id, job, ARGV[2])
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
local freed = unblock_behind(waited)
wake()
return {freed, (time_to_next()), unpack(expired)}
