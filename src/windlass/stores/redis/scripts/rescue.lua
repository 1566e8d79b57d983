-- ARGV: transitions of jobs that were found lost, as settling.lua reads them. Status, token and expiry are tested here, in
-- the write itself. Answers for each the status it was moved to, or -.
local transitions, told = read_transitions(), {}
for _, alike in ipairs(transitions) do
  for at, id in ipairs(alike.ids) do
    local job = jobs[id]
    local lost = job and job[STATUS] == 'p' and job[TOKEN] == alike.token and tonumber(job[EXPIRES_AT]) <= now
    told[#told + 1] = lost and settle(alike, id, job, alike.results[at], true) or '-'
  end
end
finish_settling(transitions)
return table.concat(told)
