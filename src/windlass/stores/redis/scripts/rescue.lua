-- ARGV: transitions of jobs that were found lost. Status, token and expiry are tested here, in the write itself.
-- Answers for each the status it was moved to, or nothing.
local told = {}
for at = 1, #ARGV, TRANSITION do
  local one = transition_at(at)
  local job = job_of(one.id)
  local lost = job and job[STATUS] == 'p' and job[TOKEN] == one.token and tonumber(job[EXPIRES_AT]) <= now
  if lost then
    told[#told + 1] = settle(one, job, true)
    waited_for(job, waited)
  else
    told[#told + 1] = ''
  end
end
finish_settling()
return told
