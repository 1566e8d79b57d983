-- ARGV: n. Answers id and record of jobs whose lease has expired, longest ago first.
local ids = redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, ARGV[1])
load(ids)
local told = {}
for _, id in ipairs(ids) do
  if jobs[id] then
    told[#told + 1] = id
    told[#told + 1] = joined(jobs[id])
  else
    drop(LEASES, id)
  end
end
return told
