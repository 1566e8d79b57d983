-- ARGV: how many ms, the priority to raise to, n. Answers how many queued jobs were raised.
local LEVELS = 1000
-- How many that took their turn beside those who stood there, and have not stood there themselves, are passed over.
local PASSED_OVER = 1000
local before, to, n = now - tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local raised, passed = 0, 0

local function raise(id, job)
  local from = job[PRIORITY]
  leave(id, job, 'q')
  job[PRIORITY], job[UPDATED_AT] = to, NOW
  enter(id, job, 'q', 'q')
  tell(id, job, 'g', '', noted('priority ' .. from .. ' to ' .. to))
  raised = raised + 1
end

-- Raises those of a page of a line, as they were before any was raised; says whether there may be more.
local function raise_some(key, from)
  local asked = n - raised
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', before, 'LIMIT', from, asked)
  load(ids)
  for _, id in ipairs(ids) do
    local job = jobs[id]
    if not job then
      drop(key, id)
    elseif tonumber(job[CREATED_AT]) <= before then
      raise(id, job)
    else
      passed = passed + 1
    end
  end
  return #ids == asked and from + asked
end

for _, line in ipairs(redis.call('ZRANGEBYSCORE', P .. 'lines', '(' .. to, '+inf', 'LIMIT', 0, LEVELS)) do
  local from = 0
  while from and raised < n and (from == 0 or passed < PASSED_OVER) do
    from = raise_some(P .. 'w:' .. line, from)
  end
end
flush()
return raised
