-- ARGV: transitions, as settling.lua reads them. Answers a, s or m for each: applied, stale, missing.
local ids = {}
for at = 2, #ARGV, 2 do
  for id in string.gmatch(ARGV[at], '(%Z*)%z%Z*%z%Z*%z') do
    ids[#ids + 1] = id
  end
end
load(ids)
local WORDS = {
  s = 'scheduled', q = 'queued', b = 'blocked', p = 'processing', r = 'retrying', d = 'succeeded', f = 'failed',
  c = 'cancelled',
}
local verdicts = {}
each_transition(function(one)
  local job = jobs[one.id]
  if not job then
    verdicts[#verdicts + 1] = 'm'
  elseif job[TOKEN] == one.token then
    if job[STATUS] == 'p' then
      settle(one, job, false)
      waited_for(job, waited)
    end
    -- Only the holder of a token can end its attempt, so the same token on a job that has moved on means that this very
    -- ending was written before, by a call whose answer was lost.
    verdicts[#verdicts + 1] = 'a'
  else
    local note = 'late ' .. WORDS[one.to] .. ' of lease ' .. one.token .. ', the lease is ' .. job[TOKEN] .. ' now'
    tell(one.id, job, 'x', one.token, noted(note .. ': not applied'))
    verdicts[#verdicts + 1] = 's'
  end
end)
finish_settling()
return table.concat(verdicts)
