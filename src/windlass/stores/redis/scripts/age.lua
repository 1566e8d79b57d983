-- ARGV: how many ms, the priority to raise to, n. Answers how many queued jobs were raised.
local LEVELS = 1000
local before, to, n = now - tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local raised = 0
for _, line in ipairs(redis.call('ZRANGEBYSCORE', P .. 'lines', '(' .. to, '+inf', 'LIMIT', 0, LEVELS)) do
  local key = P .. 'w:' .. line
  local ids = raised < n and redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', 0, n - raised) or {}
  load(ids)
  for _, id in ipairs(ids) do
    local job = jobs[id]
    if job then
      local from = job[PRIORITY]
      leave(id, job, 'q')
      job[PRIORITY], job[UPDATED_AT] = to, NOW
      enter(id, job, 'q', 'q')
      tell(id, job, 'g', '', noted('priority ' .. from .. ' to ' .. to))
    else
      drop(key, id)
    end
  end
  raised = raised + #ids
end
flush()
return raised
