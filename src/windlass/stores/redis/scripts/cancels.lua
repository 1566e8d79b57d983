-- ARGV: worker. Answers the ids of its jobs that somebody asked to cancel. Only reads.
local ids, told = redis.call('ZRANGE', P .. 'cancels', 0, -1), {}
load(ids)
for _, id in ipairs(ids) do
  local job = jobs[id]
  if job and job[STATUS] == 'p' and job[WORKER] == ARGV[1] and job[CANCEL_AT] ~= '' then
    told[#told + 1] = id
  end
end
return told
