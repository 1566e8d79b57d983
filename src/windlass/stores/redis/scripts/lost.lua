-- ARGV: n. Answers id and record of jobs whose lease has expired, longest ago first.
local most, found = tonumber(ARGV[1]), {}
for _, named_ in ipairs(redis.call('HKEYS', COUNTS)) do
  local of = string.match(named_, '^p' .. SEP .. '(.*)$')
  local key = of and P .. 'leases:' .. of
  local ids = key and redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most) or {}
  for at = 1, #ids, 2 do
    found[#found + 1] = {id = ids[at], ended = tonumber(ids[at + 1]), key = key}
  end
end
table.sort(found, function(one, other)
  return one.ended < other.ended or (one.ended == other.ended and one.id < other.id)
end)
local told = {}
for at = 1, math.min(most, #found) do
  local id, job = found[at].id, job_of(found[at].id)
  if job then
    told[#told + 1] = id
    told[#told + 1] = joined(job)
  else
    drop(found[at].key, id)
  end
end
return told
