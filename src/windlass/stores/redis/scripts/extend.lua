-- ARGV: worker, lease in ms, then id and token of each lease. Answers l, c or nothing for each: lost, asked to cancel.
-- `confirmed` has the token of every lease that was extended.
local until_, told = digits[now + tonumber(ARGV[2])], {}
local ids = {}
for at = 3, #ARGV, 2 do
  ids[#ids + 1] = ARGV[at]
end
load(ids)
for at = 3, #ARGV, 2 do
  local id, job = ARGV[at], jobs[ARGV[at]]
  if job and job[STATUS] == 'p' and job[TOKEN] == ARGV[at + 1] and job[WORKER] == ARGV[1] then
    job[EXPIRES_AT] = until_
    touch(id, job)
    lease_all(names_of(job), {id}, until_)
    add_all(P .. 'confirmed', job[TOKEN], {id})
    told[#told + 1] = job[CANCEL_AT] ~= '' and 'c' or ''
  else
    told[#told + 1] = 'l'
  end
end
go_on_when_full()
flush()
return told
