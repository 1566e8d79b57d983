-- ARGV: n. Answers now, the time until the next tick of a schedule that is not due, or -1, then name and record of those
-- that are due, longest first.
local n, told = tonumber(ARGV[1]), {}
if redis.call('HLEN', P .. 'schedules') ~= redis.call('ZCARD', P .. 'upcoming') then
  stand_all()
end
local due = redis.call('ZRANGEBYSCORE', P .. 'upcoming', '-inf', now, 'WITHSCORES', 'LIMIT', 0, n)
for at = 1, #due, 2 do
  local found = redis.call('HGET', P .. 'schedules', due[at])
  local known = found and split(found)
  if not known then
    redis.call('ZREM', P .. 'upcoming', due[at])
  elseif known[PAUSED] ~= '' or known[NEXT] ~= due[at + 1] then
    stand(due[at], known)
  else
    told[#told + 1] = due[at]
    told[#told + 1] = found
  end
end
local following = redis.call('ZRANGEBYSCORE', P .. 'upcoming', '(' .. NOW, '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
return {now, following and tonumber(following) - now or -1, unpack(told)}
