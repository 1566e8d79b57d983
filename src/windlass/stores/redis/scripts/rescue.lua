-- ARGV: transitions of jobs that were found lost, as settling.lua reads them. Status, token and expiry are tested here, in
-- the write itself. Answers for each the status it was moved to, or -.
local told = {}
each_transition(function(one)
  local job = job_of(one.id)
  local lost = job and job[STATUS] == 'p' and job[TOKEN] == one.token and tonumber(job[EXPIRES_AT]) <= now
  if lost then
    told[#told + 1] = settle(one, job, true)
    waited_for(job, waited)
  else
    told[#told + 1] = '-'
  end
end)
finish_settling()
return table.concat(told)
