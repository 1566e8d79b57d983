-- ARGV: name and record of each schedule. A changed rule starts from its own next tick; an unchanged one must not skip
-- or repeat the tick it stands at.
local EXPRESSION, ZONE, NEXT, LAST, PAUSED, UPDATED = 1, 2, 10, 11, 12, 14
for at = 1, #ARGV, 2 do
  local fresh, found = split(ARGV[at + 1]), redis.call('HGET', P .. 'schedules', ARGV[at])
  if found then
    local known = split(found)
    if known[EXPRESSION] == fresh[EXPRESSION] and known[ZONE] == fresh[ZONE] then
      fresh[NEXT] = known[NEXT]
    end
    fresh[LAST], fresh[PAUSED] = known[LAST], known[PAUSED]
  end
  fresh[UPDATED] = now
  redis.call('HSET', P .. 'schedules', ARGV[at], packed(fresh))
end
wake()
return 1
