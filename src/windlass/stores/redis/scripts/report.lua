-- ARGV: id, token and progress of each report. Answers a, s or m for each: applied, stale, missing.
local verdicts = {}
for at = 1, #ARGV, 3 do
  local id = ARGV[at]
  local job = job_of(id)
  if not job then
    verdicts[#verdicts + 1] = 'm'
  elseif job[STATUS] == 'p' and job[TOKEN] == ARGV[at + 1] then
    job[PROGRESS], job[UPDATED_AT] = ARGV[at + 2], NOW
    touch(id, job)
    verdicts[#verdicts + 1] = 'a'
  else
    verdicts[#verdicts + 1] = 's'
  end
end
go_on_when_full()
flush()
wake(true)
return verdicts
