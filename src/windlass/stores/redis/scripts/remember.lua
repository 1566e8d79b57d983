-- ARGV: id, token, name and value of each. Answers a, s or m for each: applied, stale, missing.
local verdicts = {}
go_on_when_full()
for at = 1, #ARGV, 4 do
  local id, job = ARGV[at], job_of(ARGV[at])
  if not job then
    verdicts[#verdicts + 1] = 'm'
  elseif job[STATUS] == 'p' and job[TOKEN] == ARGV[at + 1] then
    keep_value(id, job, ARGV[at + 2], ARGV[at + 3])
    verdicts[#verdicts + 1] = 'a'
  else
    verdicts[#verdicts + 1] = 's'
  end
end
flush()
wake(true)
return table.concat(verdicts)
