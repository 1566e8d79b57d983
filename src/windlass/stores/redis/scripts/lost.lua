-- ARGV: n. Answers id, record and whether the lease was confirmed, of jobs whose lease has expired, longest ago first.
local LISTS = 1000
local most, found = tonumber(ARGV[1]), {}

-- No lease of this list has ended: it is looked at again when its first one may have.
local function look_later(of, key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if first[2] then
    redis.call('ZADD', P .. 'leased', first[2], of)
  else
    redis.call('ZREM', P .. 'leased', of)
  end
end

go_on_when_full()
for _, of in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leased', '-inf', now, 'LIMIT', 0, LISTS)) do
  local key = P .. 'leases:' .. of
  local ids = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for at = 1, #ids, 2 do
    found[#found + 1] = {id = ids[at], ended = tonumber(ids[at + 1]), key = key}
  end
  if #ids == 0 then
    look_later(of, key)
  end
end
table.sort(found, function(one, other)
  return one.ended < other.ended or (one.ended == other.ended and one.id < other.id)
end)
local told = {}
for at = 1, math.min(most, #found) do
  local id, job = found[at].id, job_of(found[at].id)
  if job then
    local n = #told
    told[n + 1], told[n + 2] = id, joined(job)
    told[n + 3] = tonumber(redis.call('ZSCORE', P .. 'confirmed', id) or -1) == tonumber(job[TOKEN]) and 1 or 0
  else
    drop(found[at].key, id)
  end
end
return told
